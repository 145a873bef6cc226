"""Element functions of shaders in single precision: formulas without doubles.

The built-in functions of WGSL are too inexact for large operands, and their results for NaN and
infinity are not defined. Sums of a number and its rounding error are avoided, since compilers may
reassociate; arguments of trigonometric functions are reduced in integers.
"""

from __future__ import annotations

from typing import Final

FUNCTIONS: Final = """
fn tw_scaled(x: f32, n: i32) -> f32 {
    let m = max(min(n, 300i), -300i);
    let first = m / 3i;
    let rest = m - 2i * first;
    let third = bitcast<f32>(bitcast<u32>(first + 127i) << 23u);
    return ((x * third) * third) * bitcast<f32>(bitcast<u32>(rest + 127i) << 23u);
}
fn tw_copysign(x: f32, sign: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}
fn tw_negative(x: f32) -> bool {
    return (bitcast<u32>(x) >> 31u) == 1u;
}
fn tw_exp_tail(r: f32) -> f32 {
    let high = 0.041666552f + r * (0.008363233f + r * 0.001392625f);
    return r + (r * r) * (0.5f + r * (0.16666576f + r * high));
}
fn tw_exp(x: f32) -> f32 {
    if tw_isnan(x) {
        return x;
    }
    if x > 89.0f {
        return tw_float(0x7f800000u);
    }
    if x < -104.0f {
        return 0.0f;
    }
    let n = round(x * 1.442695f);
    let r = (x - n * 0.6931457519f) - n * 1.4286068e-6f;
    return tw_scaled(1.0f + tw_exp_tail(r), i32(n));
}
fn tw_exp2(x: f32) -> f32 {
    if tw_isnan(x) {
        return x;
    }
    if x > 129.0f {
        return tw_float(0x7f800000u);
    }
    if x < -151.0f {
        return 0.0f;
    }
    let n = round(x);
    return tw_scaled(1.0f + tw_exp_tail((x - n) * 0.6931472f), i32(n));
}
fn tw_expm1(x: f32) -> f32 {
    if abs(x) < 0.000001f {
        return x;
    }
    if abs(x) < 0.34f {
        return tw_exp_tail(x);
    }
    return tw_exp(x) - 1.0f;
}
fn tw_sigmoid(x: f32) -> f32 {
    let z = tw_exp(-abs(x));
    return select(1.0f, z, tw_negative(x)) / (1.0f + z);
}
fn tw_tanh(x: f32) -> f32 {
    if tw_isnan(x) || abs(x) < 0.0001f {
        return x;
    }
    let z = x * x;
    if abs(x) < 0.625f {
        let high = -0.05385091f + z * (0.02099718f + z * -0.0060967142f);
        return x + x * (z * (-0.3333333f + z * (0.1333277f + z * high)));
    }
    return tw_copysign(1.0f - 2.0f / (tw_exp(2.0f * min(abs(x), 10.0f)) + 1.0f), x);
}
fn tw_log_near(f: f32) -> f32 {
    let s = f / (2.0f + f);
    let z = s * s;
    let r = z * (0.6666667f + z * (0.40000123f + z * (0.28550804f + z * 0.23330964f)));
    let half = 0.5f * f * f;
    return f - (half - s * (half + r));
}
struct tw_LogParts {
    exponent: f32,
    fraction: f32,
    special: bool,
    value: f32,
}
fn tw_log_parts(x: f32) -> tw_LogParts {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) == 0u {
        return tw_LogParts(0.0f, 0.0f, true, tw_float(0xff800000u));
    }
    if bits >= 0x7f800000u {
        let value = tw_float(select(bits, 0x7fc00000u, bits != 0x7f800000u));
        return tw_LogParts(0.0f, 0.0f, true, value);
    }
    var size = bits;
    var exponent = 0i;
    if bits < 0x800000u {
        let n = countLeadingZeros(bits) - 8u;
        size = bits << n;
        exponent = -i32(n);
    }
    let moved = size - 0x3f3504f3u;
    exponent += bitcast<i32>(moved) >> 23u;
    let m = bitcast<f32>((moved & 0x7fffffu) + 0x3f3504f3u);
    return tw_LogParts(f32(exponent), tw_log_near(m - 1.0f), false, 0.0f);
}
fn tw_log(x: f32) -> f32 {
    let p = tw_log_parts(x);
    if p.special {
        return p.value;
    }
    return p.exponent * 0.6931381226f + (p.exponent * 9.0580006e-6f + p.fraction);
}
fn tw_log2(x: f32) -> f32 {
    let p = tw_log_parts(x);
    if p.special {
        return p.value;
    }
    return p.exponent + p.fraction * 1.442695f;
}
fn tw_log10(x: f32) -> f32 {
    let p = tw_log_parts(x);
    if p.special {
        return p.value;
    }
    let low = p.exponent * 7.9034151e-7f + p.fraction * 0.4342945f;
    return p.exponent * 0.3010292053f + low;
}
fn tw_log1p(x: f32) -> f32 {
    if abs(x) < 0.00001f {
        return x - 0.5f * x * x;
    }
    if x > -0.29f && x < 0.41f {
        return tw_log_near(x);
    }
    return tw_log(1.0f + x);
}
const tw_two_over_pi = array<u32, 8>(
    0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu
);
struct tw_Angle {
    quadrant: u32,
    rest: f32,
}
fn tw_angle(size: u32) -> tw_Angle {
    if size < 0x3f490fdbu {
        return tw_Angle(0u, bitcast<f32>(size));
    }
    let mantissa = (size & 0x7fffffu) | 0x800000u;
    let start = (size >> 23u) - 120u;
    let first = start >> 5u;
    let shift = start & 31u;
    var table = tw_two_over_pi;
    var window = vec3<u32>(table[first], table[first + 1u], table[first + 2u]);
    if shift > 0u {
        let back = 32u - shift;
        window = vec3<u32>(
            (window.x << shift) | (window.y >> back),
            (window.y << shift) | (window.z >> back),
            (window.z << shift) | (table[first + 3u] >> back),
        );
    }
    let middle = tw_wide_product(mantissa, window.y);
    let low = tw_wide_product(mantissa, window.z).y;
    let turns = tw_add64(vec2<u32>(0u, mantissa * window.x), tw_add64(middle, vec2<u32>(low, 0u)));
    let quadrant = (turns.y + 0x20000000u) >> 30u;
    let rest = vec2<u32>(turns.x, turns.y - (quadrant << 30u));
    let negative = (rest.y >> 31u) == 1u;
    let part = tw_f32_of_u64(tw_abs64(rest)) * 3.4061215800303e-19f;
    return tw_Angle(quadrant & 3u, select(part, -part, negative));
}
fn tw_sine_near(r: f32) -> f32 {
    let z = r * r;
    return r + r * (z * (-0.16666655f + z * (0.0083321609f + z * -0.00019515296f)));
}
fn tw_cosine_near(r: f32) -> f32 {
    let z = r * r;
    let high = 0.041666646f + z * (-0.0013887316f + z * 0.000024433157f);
    return 1.0f - (0.5f * z - (z * z) * high);
}
fn tw_sin(x: f32) -> f32 {
    let size = bitcast<u32>(x) & 0x7fffffffu;
    if size >= 0x7f800000u {
        return tw_float(0x7fc00000u);
    }
    if size < 0x39000000u {
        return x;
    }
    let a = tw_angle(size);
    let sine = tw_sine_near(a.rest);
    let value = select(sine, tw_cosine_near(a.rest), (a.quadrant & 1u) == 1u);
    return select(value, -value, (a.quadrant > 1u) != tw_negative(x));
}
fn tw_cos(x: f32) -> f32 {
    let size = bitcast<u32>(x) & 0x7fffffffu;
    if size >= 0x7f800000u {
        return tw_float(0x7fc00000u);
    }
    let a = tw_angle(size);
    let cosine = tw_cosine_near(a.rest);
    let value = select(cosine, tw_sine_near(a.rest), (a.quadrant & 1u) == 1u);
    return select(value, -value, a.quadrant == 1u || a.quadrant == 2u);
}
fn tw_tan(x: f32) -> f32 {
    let size = bitcast<u32>(x) & 0x7fffffffu;
    if size >= 0x7f800000u {
        return tw_float(0x7fc00000u);
    }
    if size < 0x39000000u {
        return x;
    }
    let a = tw_angle(size);
    let sine = tw_sine_near(a.rest);
    let cosine = tw_cosine_near(a.rest);
    let odd = (a.quadrant & 1u) == 1u;
    let value = select(sine, -cosine, odd) / select(cosine, sine, odd);
    return select(value, -value, tw_negative(x));
}
fn tw_asin_near(x: f32, z: f32) -> f32 {
    let high = 0.045470026f + z * (0.024181311f + z * 0.0421632f);
    return x + x * (z * (0.16666752f + z * (0.074953003f + z * high)));
}
fn tw_asin(x: f32) -> f32 {
    let a = abs(x);
    if tw_isnan(x) || a > 1.0f {
        return tw_float(0x7fc00000u);
    }
    if a < 0.0001f {
        return x;
    }
    if a < 0.5f {
        return tw_asin_near(x, x * x);
    }
    let z = 0.5f - 0.5f * a;
    return tw_copysign(1.5707964f - 2.0f * tw_asin_near(sqrt(z), z), x);
}
fn tw_acos(x: f32) -> f32 {
    let a = abs(x);
    if tw_isnan(x) || a > 1.0f {
        return tw_float(0x7fc00000u);
    }
    if a < 0.5f {
        return 1.5707964f - tw_asin_near(x, x * x);
    }
    let z = 0.5f - 0.5f * a;
    let half = 2.0f * tw_asin_near(sqrt(z), z);
    return select(half, 3.1415927f - half, tw_negative(x));
}
fn tw_atan(x: f32) -> f32 {
    if tw_isnan(x) || abs(x) < 0.0001f {
        return x;
    }
    let a = abs(x);
    var start = 0.0f;
    var t = a;
    if a > 2.4142137f {
        start = 1.5707964f;
        t = -1.0f / a;
    } else if a > 0.41421357f {
        start = 0.7853982f;
        t = (a - 1.0f) / (a + 1.0f);
    }
    let z = t * t;
    let high = 0.19977711f + z * (-0.13877686f + z * 0.080537446f);
    let part = t + t * (z * (-0.3333295f + z * high));
    if tw_isinf(x) {
        return tw_copysign(1.5707964f, x);
    }
    return tw_copysign(start + part, x);
}
fn tw_atan2(y: f32, x: f32) -> f32 {
    if tw_isnan(x) || tw_isnan(y) {
        return tw_float(0x7fc00000u);
    }
    let a = abs(y);
    let b = abs(x);
    var angle = 0.0f;
    if a == b {
        angle = select(0.7853982f, 0.0f, a == 0.0f);
    } else if a < b {
        angle = select(tw_atan(a / b), 0.0f, tw_isinf(x));
    } else {
        angle = 1.5707964f - select(tw_atan(b / a), 0.0f, tw_isinf(y));
    }
    return tw_copysign(select(angle, 3.1415927f - angle, tw_negative(x)), y);
}
fn tw_sinh(x: f32) -> f32 {
    let a = abs(x);
    if tw_isnan(x) || a < 0.0001f {
        return x;
    }
    if a < 1.0f {
        let z = x * x;
        let r = z * (0.16666716f + z * (0.0083302838f + z * 0.00020372191f));
        return x + x * r;
    }
    let h = tw_exp(0.5f * min(a, 200.0f));
    return tw_copysign((0.5f * h) * h - 0.5f / (h * h), x);
}
fn tw_cosh(x: f32) -> f32 {
    if tw_isnan(x) {
        return x;
    }
    let h = tw_exp(0.5f * min(abs(x), 200.0f));
    return (0.5f * h) * h + 0.5f / (h * h);
}
fn tw_asinh(x: f32) -> f32 {
    let a = abs(x);
    if tw_isnan(x) || tw_isinf(x) || a < 0.0001f {
        return x;
    }
    if a > 1.0e9f {
        return tw_copysign(tw_log(a) + 0.6931472f, x);
    }
    return tw_copysign(tw_log1p(a + (a * a) / (1.0f + sqrt(a * a + 1.0f))), x);
}
fn tw_acosh(x: f32) -> f32 {
    if tw_isnan(x) || x < 1.0f {
        return tw_float(0x7fc00000u);
    }
    if tw_isinf(x) {
        return x;
    }
    if x > 1.0e9f {
        return tw_log(x) + 0.6931472f;
    }
    let t = x - 1.0f;
    return tw_log1p(t + sqrt(t * (t + 2.0f)));
}
fn tw_atanh(x: f32) -> f32 {
    let a = abs(x);
    if tw_isnan(x) || a > 1.0f {
        return tw_float(0x7fc00000u);
    }
    if a < 0.0001f {
        return x;
    }
    if a == 1.0f {
        return tw_copysign(tw_float(0x7f800000u), x);
    }
    return tw_copysign(0.5f * tw_log1p(2.0f * a / (1.0f - a)), x);
}
fn tw_erfc_far(a: f32) -> f32 {
    let t = 1.0f / (1.0f + 0.5f * a);
    let upper = -1.135204f + t * (1.4885159f + t * (-0.8221522f + t * 0.17087277f));
    let middle = 0.09678418f + t * (-0.18628806f + t * (0.27886807f + t * upper));
    let power = -1.2655122f + t * (1.0000237f + t * (0.37409196f + t * middle));
    let head = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    return t * tw_exp(-head * head) * tw_exp((head - a) * (head + a) + power);
}
fn tw_erf(x: f32) -> f32 {
    let a = abs(x);
    if tw_isnan(x) {
        return x;
    }
    if a < 0.5f {
        let z = x * x;
        let high = -0.02686617f + z * (0.0052239776f + z * -0.0008548327f);
        return x * (1.1283792f + z * (-0.37612638f + z * (0.11283792f + z * high)));
    }
    return tw_copysign(1.0f - tw_erfc_far(min(a, 10.0f)), x);
}
fn tw_erfc(x: f32) -> f32 {
    if tw_isnan(x) {
        return x;
    }
    if abs(x) < 0.5f {
        return 1.0f - tw_erf(x);
    }
    let far = tw_erfc_far(min(abs(x), 20.0f));
    return select(far, 2.0f - far, tw_negative(x));
}
fn tw_is_odd(y: f32) -> bool {
    return abs(y) < 16777216.0f && trunc(y) == y && (i32(y) & 1i) == 1i;
}
fn tw_pow(x: f32, y: f32) -> f32 {
    if y == 0.0f && !tw_isnan(y) {
        return 1.0f;
    }
    if x == 1.0f && !tw_isnan(x) {
        return 1.0f;
    }
    if tw_isnan(x) || tw_isnan(y) {
        return tw_float(0x7fc00000u);
    }
    let a = abs(x);
    let infinity = tw_float(0x7f800000u);
    if tw_isinf(y) {
        if a == 1.0f {
            return 1.0f;
        }
        return select(infinity, 0.0f, (a < 1.0f) != tw_negative(y));
    }
    let whole = abs(y) >= 16777216.0f || trunc(y) == y;
    if tw_negative(x) && a != 0.0f && !tw_isinf(x) && !whole {
        return tw_float(0x7fc00000u);
    }
    let negative = tw_negative(x) && tw_is_odd(y);
    var size = 0.0f;
    if a == 0.0f || tw_isinf(x) {
        size = select(infinity, 0.0f, (a == 0.0f) != tw_negative(y));
    } else if whole && abs(y) <= 16.0f {
        size = 1.0f;
        for (var k = 0i; k < i32(abs(y)); k++) {
            size *= a;
        }
        if tw_negative(y) {
            size = 1.0f / size;
        }
    } else {
        let p = tw_log_parts(a);
        let estimate = y * (p.exponent + p.fraction * 1.442695f);
        if abs(estimate) > 200.0f {
            size = select(infinity, 0.0f, estimate < 0.0f);
        } else {
            let head = bitcast<f32>(bitcast<u32>(y) & 0xfffff000u);
            let main = head * p.exponent;
            let n = round(main);
            let rest = (main - n) + ((y - head) * p.exponent + y * (p.fraction * 1.442695f));
            let more = round(rest);
            size = tw_scaled(tw_exp2(rest - more), i32(n + more));
        }
    }
    return select(size, -size, negative);
}
fn tw_rsqrt(x: f32) -> f32 {
    return 1.0f / sqrt(x);
}
fn tw_hypot(x: f32, y: f32) -> f32 {
    if tw_isinf(x) || tw_isinf(y) {
        return tw_float(0x7f800000u);
    }
    if tw_isnan(x) || tw_isnan(y) {
        return tw_float(0x7fc00000u);
    }
    let large = max(abs(x), abs(y));
    if large == 0.0f {
        return 0.0f;
    }
    let r = min(abs(x), abs(y)) / large;
    return large * sqrt(1.0f + r * r);
}
fn tw_ldexp(x: f32, n: i32) -> f32 {
    if tw_isnan(x) || tw_isinf(x) || x == 0.0f {
        return x;
    }
    return tw_scaled(x, n);
}
fn tw_fmod(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    if a >= 0x7f800000u || b > 0x7f800000u || b == 0u {
        return tw_float(0x7fc00000u);
    }
    if a < b {
        return x;
    }
    var exponent = a >> 23u;
    var least = b >> 23u;
    var rest = select((a & 0x7fffffu) | 0x800000u, a & 0x7fffffu, exponent == 0u);
    let divisor = select((b & 0x7fffffu) | 0x800000u, b & 0x7fffffu, least == 0u);
    exponent = max(exponent, 1u);
    least = max(least, 1u);
    rest = rest % divisor;
    for (var k = least; k < exponent; k++) {
        rest = (rest << 1u) % divisor;
    }
    let sign = bitcast<u32>(x) & 0x80000000u;
    if rest == 0u {
        return bitcast<f32>(sign);
    }
    let shift = min(countLeadingZeros(rest) - 8u, least - 1u);
    let bits = rest << shift;
    let field = (least - shift) << 23u;
    return bitcast<f32>(sign | select(bits, (bits & 0x7fffffu) | field, bits >= 0x800000u));
}
fn tw_mod(x: f32, y: f32) -> f32 {
    let rest = tw_fmod(x, y);
    if tw_isnan(rest) {
        return rest;
    }
    if (bitcast<u32>(rest) & 0x7fffffffu) == 0u {
        return tw_copysign(0.0f, y);
    }
    return select(rest, rest + y, tw_negative(rest) != tw_negative(y));
}
fn tw_floordiv(x: f32, y: f32) -> f32 {
    if (bitcast<u32>(y) & 0x7fffffffu) == 0u {
        return x / y;
    }
    let rest = tw_mod(x, y);
    if tw_isnan(rest) {
        return rest;
    }
    if tw_isinf(y) {
        return select(tw_copysign(0.0f, x) * tw_copysign(1.0f, y), -1.0f,
            x != 0.0f && tw_negative(x) != tw_negative(y));
    }
    let quotient = (x - rest) / y;
    return tw_copysign(round(quotient), select(quotient, x / y, quotient == 0.0f));
}
"""
"""Texts of helper functions; the name of each is that of the element function after ``tw_``."""

NATIVE: Final = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cos", "cosh",
        "erf", "erfc", "exp", "exp2", "expm1", "floordiv", "fmod", "hypot", "ldexp", "log",
        "log10", "log1p", "log2", "mod", "pow", "rsqrt", "sigmoid", "sin", "sinh", "tan", "tanh",
    }
)  # fmt: skip
"""The element functions of floats that shaders compute with a helper function."""
