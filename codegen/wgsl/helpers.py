"""Helper functions of shaders: operations that are defined for all operands.

WGSL leaves NaN in ``min`` and ``max``, conversions out of range, and others to the implementation.
Tests of NaN examine bits, because implementations may assume that numbers are finite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from .functions import FUNCTIONS
from .words64 import WORDS64

_BASIC: Final = """
fn tw_float(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}
fn tw_isnan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
fn tw_isinf(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}
fn tw_eq_f32(a: f32, b: f32) -> bool {
    return a == b && !tw_isnan(a) && !tw_isnan(b);
}
fn tw_lt_f32(a: f32, b: f32) -> bool {
    return a < b && !tw_isnan(a) && !tw_isnan(b);
}
fn tw_le_f32(a: f32, b: f32) -> bool {
    return a <= b && !tw_isnan(a) && !tw_isnan(b);
}
fn tw_min_f32(a: f32, b: f32) -> f32 {
    if tw_isnan(a) {
        return a;
    }
    if tw_isnan(b) {
        return b;
    }
    return select(b, a, a < b);
}
fn tw_max_f32(a: f32, b: f32) -> f32 {
    if tw_isnan(a) {
        return a;
    }
    if tw_isnan(b) {
        return b;
    }
    return select(b, a, a > b);
}
fn tw_i32_of_f32(x: f32) -> i32 {
    if tw_isnan(x) {
        return 0i;
    }
    if x >= 2147483648.0f {
        return 2147483647i;
    }
    if x < -2147483648.0f {
        return i32(-2147483648);
    }
    return i32(x);
}
fn tw_u32_of_f32(x: f32) -> u32 {
    if tw_isnan(x) || x <= 0.0f {
        return 0u;
    }
    if x >= 4294967296.0f {
        return 4294967295u;
    }
    return u32(x);
}
fn tw_clamped_i32(x: i32, low: i32, high: i32) -> i32 {
    return max(min(x, high), low);
}
fn tw_div_i32(a: i32, b: i32) -> i32 {
    if b == 0i {
        return 0i;
    }
    if b == -1i {
        return 0i - a;
    }
    return a / b;
}
fn tw_floordiv_i32(a: i32, b: i32) -> i32 {
    if b == 0i {
        return 0i;
    }
    if b == -1i {
        return 0i - a;
    }
    let quotient = a / b;
    let remainder = a - quotient * b;
    return quotient - select(0i, 1i, remainder != 0i && (remainder ^ b) < 0i);
}
fn tw_mod_i32(a: i32, b: i32) -> i32 {
    if b == 0i || b == -1i {
        return 0i;
    }
    let remainder = a - (a / b) * b;
    return remainder + select(0i, b, remainder != 0i && (remainder ^ b) < 0i);
}
fn tw_div_u32(a: u32, b: u32) -> u32 {
    if b == 0u {
        return 0u;
    }
    return a / b;
}
fn tw_mod_u32(a: u32, b: u32) -> u32 {
    if b == 0u {
        return 0u;
    }
    return a % b;
}
fn tw_shl_u32(a: u32, n: u32) -> u32 {
    return select(a << (n & 31u), 0u, n > 31u);
}
fn tw_shr_u32(a: u32, n: u32) -> u32 {
    return select(a >> (n & 31u), 0u, n > 31u);
}
fn tw_shr_i32(a: i32, n: u32) -> i32 {
    return a >> min(n, 31u);
}
fn tw_f16_value(bits: u32) -> f32 {
    let size = bits & 0x7fffu;
    let sign = (bits & 0x8000u) << 16u;
    if size < 0x400u {
        return bitcast<f32>(bitcast<u32>(f32(size) * 0.000000059604644775390625f) | sign);
    }
    let exponent = select(0x38000000u, 0x70000000u, size >= 0x7c00u);
    return bitcast<f32>(((size << 13u) + exponent) | sign);
}
fn tw_f16_bits(x: f32) -> u32 {
    let size = bitcast<u32>(x) & 0x7fffffffu;
    let sign = (bitcast<u32>(x) >> 16u) & 0x8000u;
    if size > 0x7f800000u {
        return 0x7e00u | sign;
    }
    if size >= 0x47800000u {
        return 0x7c00u | sign;
    }
    if size >= 0x38800000u {
        let moved = size - 0x38000000u;
        return ((moved + 0xfffu + ((moved >> 13u) & 1u)) >> 13u) | sign;
    }
    let shift = 126u - (size >> 23u);
    if shift > 24u {
        return sign;
    }
    let mantissa = (size & 0x7fffffu) | 0x800000u;
    let kept = mantissa >> shift;
    let lost = mantissa & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    let up = lost > half || (lost == half && (kept & 1u) == 1u);
    return (kept + select(0u, 1u, up)) | sign;
}
fn tw_round_f16(x: f32) -> f32 {
    return tw_f16_value(tw_f16_bits(x));
}
fn tw_bf16_value(bits: u32) -> f32 {
    return bitcast<f32>(bits << 16u);
}
fn tw_bf16_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if tw_isnan(x) {
        return (bits >> 16u) | 0x40u;
    }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
fn tw_round_bf16(x: f32) -> f32 {
    return tw_bf16_value(tw_bf16_bits(x));
}
"""

_FUNCTION: Final = re.compile(r"^(?:fn|const|struct) (tw_\w+).*?^[}\])]+;?$|^const (tw_\w+).*?;$",
    re.MULTILINE | re.DOTALL)  # fmt: skip
_USED: Final = re.compile(r"\btw_\w+")


def _parts(text: str) -> dict[str, str]:
    return {m[1] or m[2]: m[0] for m in _FUNCTION.finditer(text)}


@cache
def helper_texts() -> Mapping[str, str]:
    """Return the text of each helper function by name."""
    return _parts(_BASIC) | _parts(WORDS64) | _parts(FUNCTIONS)


def with_dependencies(text: str, own: Iterable[str] = ()) -> list[str]:
    """Return the texts of the helpers that a text uses, each after those that it uses.

    Examples
    --------
    >>> [t.split("(")[0] for t in with_dependencies("tw_min_f32(a, b)")]
    ['fn tw_isnan', 'fn tw_min_f32']
    """
    known, found = helper_texts(), dict[str, str]()
    defined = frozenset(own)

    def add(used: str) -> None:
        for name in dict.fromkeys(_USED.findall(used)):
            if name in known and name not in found and name not in defined:
                body = known[name]
                add(body.replace(name, "", 1))
                found.setdefault(name, body)

    add(text)
    return list(found.values())
