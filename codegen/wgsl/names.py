"""Identifiers of shaders, unique and legal for any names in a program."""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "tw_"
"""The start of the names of helper functions; no name of a program begins with it."""

_WORDS: Final = """
alias array async atomic await become bool break case cast catch class common compile const
const_assert constructor continue continuing crate debugger decltype default delete demote
diagnostic discard do dynamic_cast else enable enum export extends extern external f16 f32 f64
fallthrough false filter final finally fn for friend from fxgroup get goto groupshared highp i32
i64 i8 if impl implements import inline instanceof interface layout let loop lowp main mat2x2
mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 mediump meta mod module move mut mutable
namespace new nil noexcept noinline nointerpolation null nullptr of operator override package
packoffset params pass patch pixelfragment precise precision premerge priv private protected
pub public ptr readonly ref regardless register reinterpret_cast require requires resource
restrict return sampler sampler_comparison self set shared sizeof smooth snorm static
static_assert static_cast std storage struct subroutine super switch target template this thread
thread_local throw trait true try type typedef typeid typename typeof u32 u64 u8 uniform union
unless unorm unsafe unsized use using var varying vec2 vec3 vec4 vec2f vec2u vec2i virtual
volatile wgsl where while with writeonly workgroup yield function read write read_write texture
abs acos acosh all any arrayLength asin asinh atan atan2 atanh atomicAdd atomicAnd
atomicCompareExchangeWeak atomicExchange atomicLoad atomicMax atomicMin atomicOr atomicStore
atomicSub atomicXor bitcast ceil clamp cos cosh countLeadingZeros countOneBits countTrailingZeros
cross degrees determinant distance dot dot4I8Packed dot4U8Packed dpdx dpdy exp exp2 extractBits
faceForward firstLeadingBit firstTrailingBit floor fma fract frexp fwidth insertBits inverseSqrt
ldexp length log log2 max min mix modf normalize outerProduct pack2x16float pow quantizeToF16
radians reflect refract reverseBits round saturate select sign sin sinh smoothstep sqrt step
storageBarrier tan tanh transpose trunc unpack2x16float workgroupBarrier workgroupUniformLoad
NULL Self abstract active alignas alignof as asm asm_fragment asuint attribute auto co_await
co_return co_yield coherent column_major compile_fragment concept const_cast consteval constexpr
constinit centroid binding_array explicit final fixed generic handle macro macro_rules match nan
noperspective partition pixel point signed unsigned var while
"""
_RESERVED: Final = frozenset(_WORDS.split())
"""Keywords, reserved words, and predeclared names of the language."""


class Names:
    """The identifiers of one shader."""

    def __init__(self) -> None:
        """Initialize without identifiers."""
        self._used: dict[str, int] = {}

    def make(self, wanted: str) -> str:
        """Return a new identifier that resembles a name.

        Examples
        --------
        >>> names = Names()
        >>> [names.make(n) for n in ("x", "x", "select", "tw_add", "größe", "__")]
        ['x', 'x_1', 'select_', 'v_tw_add', 'gr__e', 'v']
        """
        base = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
        if not base.strip("_"):
            base = "v"
        if base[0].isdigit() or base[0] == "_" or base.startswith(PREFIX):
            base = f"v_{base.lstrip('_')}"
        if base in _RESERVED:
            base += "_"
        name = base
        while name in self._used:
            self._used[base] += 1
            name = f"{base}_{self._used[base]}"
        self._used[name] = 0
        return name
