"""Helper functions for integers of 64 bits, as pairs of words, the low one first."""

from __future__ import annotations

from typing import Final

WORDS64: Final = """
fn tw_i64_of_i32(x: i32) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}
fn tw_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn tw_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn tw_neg64(a: vec2<u32>) -> vec2<u32> {
    return tw_sub64(vec2<u32>(0u, 0u), a);
}
fn tw_abs64(a: vec2<u32>) -> vec2<u32> {
    return select(a, tw_neg64(a), (a.y >> 31u) == 1u);
}
fn tw_wide_product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
    let high = (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);
    return vec2<u32>(a * b, high);
}
fn tw_mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = tw_wide_product(a.x, b.x);
    return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}
fn tw_eq64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x == b.x && a.y == b.y;
}
fn tw_lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}
fn tw_lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
fn tw_min_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, tw_lt_u64(a, b));
}
fn tw_max_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, tw_lt_u64(a, b));
}
fn tw_min_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, tw_lt_i64(a, b));
}
fn tw_max_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, tw_lt_i64(a, b));
}
fn tw_shl_64(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    if n.y != 0u || n.x > 63u {
        return vec2<u32>(0u, 0u);
    }
    if n.x > 31u {
        return vec2<u32>(0u, a.x << (n.x & 31u));
    }
    if n.x == 0u {
        return a;
    }
    return vec2<u32>(a.x << n.x, (a.y << n.x) | (a.x >> (32u - n.x)));
}
fn tw_shr_u64(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    if n.y != 0u || n.x > 63u {
        return vec2<u32>(0u, 0u);
    }
    if n.x > 31u {
        return vec2<u32>(a.y >> (n.x & 31u), 0u);
    }
    if n.x == 0u {
        return a;
    }
    return vec2<u32>((a.x >> n.x) | (a.y << (32u - n.x)), a.y >> n.x);
}
fn tw_shr_i64(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    let sign = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
    if n.y != 0u || n.x > 63u {
        return vec2<u32>(sign, sign);
    }
    if n.x > 31u {
        return vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> (n.x & 31u)), sign);
    }
    if n.x == 0u {
        return a;
    }
    let high = bitcast<u32>(bitcast<i32>(a.y) >> n.x);
    return vec2<u32>((a.x >> n.x) | (a.y << (32u - n.x)), high);
}
fn tw_divided_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if b.x == 0u && b.y == 0u {
        return vec4<u32>(0u, 0u, 0u, 0u);
    }
    if a.y == 0u && b.y == 0u {
        let small = a.x / b.x;
        return vec4<u32>(small, 0u, a.x - small * b.x, 0u);
    }
    var quotient = vec2<u32>(0u, 0u);
    var rest = vec2<u32>(0u, 0u);
    for (var k = 0u; k < 64u; k++) {
        let bit = select(a.x >> ((63u - k) & 31u), a.y >> ((31u - k) & 31u), k < 32u) & 1u;
        let carry = rest.y >> 31u;
        rest = vec2<u32>((rest.x << 1u) | bit, (rest.y << 1u) | (rest.x >> 31u));
        quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
        if carry == 1u || !tw_lt_u64(rest, b) {
            rest = tw_sub64(rest, b);
            quotient.x |= 1u;
        }
    }
    return vec4<u32>(quotient.x, quotient.y, rest.x, rest.y);
}
fn tw_div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return tw_divided_u64(a, b).xy;
}
fn tw_mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return tw_divided_u64(a, b).zw;
}
fn tw_div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let quotient = tw_divided_u64(tw_abs64(a), tw_abs64(b)).xy;
    return select(quotient, tw_neg64(quotient), ((a.y ^ b.y) >> 31u) == 1u);
}
fn tw_mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let size = tw_divided_u64(tw_abs64(a), tw_abs64(b)).zw;
    let rest = select(size, tw_neg64(size), (a.y >> 31u) == 1u);
    let moves = (size.x | size.y) != 0u && ((a.y ^ b.y) >> 31u) == 1u;
    return select(rest, tw_add64(rest, b), moves);
}
fn tw_floordiv_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let found = tw_divided_u64(tw_abs64(a), tw_abs64(b));
    let negative = ((a.y ^ b.y) >> 31u) == 1u;
    let quotient = select(found.xy, tw_neg64(found.xy), negative);
    let moves = negative && (found.z | found.w) != 0u;
    return select(quotient, tw_sub64(quotient, vec2<u32>(1u, 0u)), moves);
}
fn tw_clz64(a: vec2<u32>) -> vec2<u32> {
    let low = 32u + countLeadingZeros(a.x);
    return vec2<u32>(select(countLeadingZeros(a.y), low, a.y == 0u), 0u);
}
fn tw_f32_of_u64(a: vec2<u32>) -> f32 {
    if a.y == 0u {
        return f32(a.x);
    }
    let n = countLeadingZeros(a.y);
    let moved = tw_shl_64(a, vec2<u32>(n, 0u));
    let top = moved.y | select(0u, 1u, moved.x != 0u);
    return f32(top) * bitcast<f32>((159u - n) << 23u);
}
fn tw_f32_of_i64(a: vec2<u32>) -> f32 {
    let size = tw_f32_of_u64(tw_abs64(a));
    return select(size, -size, (a.y >> 31u) == 1u);
}
fn tw_u64_of_f32(x: f32) -> vec2<u32> {
    if tw_isnan(x) || x < 1.0f {
        return vec2<u32>(0u, 0u);
    }
    if x >= 18446744073709551616.0f {
        return vec2<u32>(0xffffffffu, 0xffffffffu);
    }
    let bits = bitcast<u32>(x);
    let exponent = bits >> 23u;
    let mantissa = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
    if exponent >= 150u {
        return tw_shl_64(mantissa, vec2<u32>(exponent - 150u, 0u));
    }
    return tw_shr_u64(mantissa, vec2<u32>(150u - exponent, 0u));
}
fn tw_i64_of_f32(x: f32) -> vec2<u32> {
    if x >= 9223372036854775808.0f && !tw_isnan(x) {
        return vec2<u32>(0xffffffffu, 0x7fffffffu);
    }
    if x <= -9223372036854775808.0f && !tw_isnan(x) {
        return vec2<u32>(0u, 0x80000000u);
    }
    let size = tw_u64_of_f32(abs(x));
    return select(size, tw_neg64(size), (bitcast<u32>(x) >> 31u) == 1u);
}
"""
"""Texts of helper functions; a division by 0 has the quotient and the remainder 0."""
