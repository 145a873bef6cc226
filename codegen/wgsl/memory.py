"""The memory of a kernel: bindings, workgroup arrays, and arrays of one invocation.

WGSL has no stores of 8 bits, and of 16 bits only with a feature. A binding with such stores is an
array of atomic words: an invocation clears and sets the bits of its own elements, so invocations
that write different elements of one word do not interfere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as Choice, TypeAlias

from ...ir.dtype import DType
from ...ir.symbolic import Expr, as_expr
from ...ir.thread.index_width import scaled
from ...ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    AtomicUpdate,
    Body,
    Gather,
    Load,
    Offset,
    Reg,
    Scatter,
    Stmt,
    Store,
    Value,
)
from ...ir.thread.types import SHARED_POINTER, PointerType, VectorType
from ...ir.thread.visit import statement_values, walk, walk_values
from .emitter import Emitter, addend, bare, dtype_of
from .terms import fits, short
from .types import PAIR, WORD, Literal, type_name

Space: TypeAlias = Choice["storage", "workgroup", "function"]
Form: TypeAlias = Choice["elements", "words", "atomic"]


@dataclass(slots=True)
class Uses:
    """The accesses through one pointer."""

    dtypes: dict[DType, None] = field(default_factory=dict[DType, None])
    narrow_stores: bool = False
    updates: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a shader.

    Parameters
    ----------
    name : str
        The identifier.
    space : str
        The address space.
    form : str
        Elements of ``dtype``, words, or atomic words.
    dtype : DType
        The dtype of all accesses, if that is one, else that of some access.
    start : str
        The expression of the index of the first word of a binding; empty for 0.
    native_half : bool
        Whether elements of half precision have their own type in memory.
    """

    name: str
    space: Space
    form: Form
    dtype: DType
    start: str = ""
    native_half: bool = False

    @property
    def element(self) -> str:
        """The type of the elements in memory."""
        if self.form != "elements":
            return "u32" if self.form == "words" else "atomic<u32>"
        if self.space == "storage" and self.dtype.name == "f16":
            return "f16"
        return type_name(self.dtype)


class Pointers:
    """The pointers of a kernel and the arrays that they are addresses of."""

    def __init__(self, body: Body) -> None:
        """Collect the accesses of all statements."""
        self.moved: dict[Reg, tuple[Reg, Expr]] = {}
        self.uses: dict[Reg, Uses] = {}
        self.allocations: dict[Reg, int] = {}
        self.arrays: dict[Reg, Array] = {}
        for statement in walk(body):
            if isinstance(statement, Assign) and isinstance(statement.reg.type, PointerType):
                self.moved[statement.reg] = self.resolve(statement.value)
            elif isinstance(statement, Allocate):
                self.allocations[statement.reg] = statement.size
        for statement in walk(body):
            for base, dtype, kind in _accesses(statement):
                root, _ = self.resolve(base)
                uses = self.uses.setdefault(root, Uses())
                uses.dtypes[dtype] = None
                uses.narrow_stores |= kind == "store" and width_of(dtype) < WORD
                uses.updates |= kind == "update"

    def resolve(self, base: Value) -> tuple[Reg, Expr]:
        """Return the pointer that an address is derived from, and the offset in bytes."""
        offset = as_expr(0)
        while True:
            match base:
                case Offset(base=inner, offset=more):
                    base, offset = inner, offset + more
                case Reg() if base in self.moved:
                    root, more = self.moved[base]
                    return root, offset + more
                case Reg():
                    return base, offset
                case _:
                    raise TypeError(f"{type(base).__name__} is not an address of a kernel")


def width_of(dtype: DType) -> int:
    """Return the bytes of an element in memory, where a boolean is a byte."""
    return VectorType(dtype).width


def _accesses(statement: Stmt) -> Iterator[tuple[Value, DType, str]]:
    match statement:
        case Store(address=Address(base=base), value=value) | Scatter(base=base, value=value):
            yield base, dtype_of(value), "store"
        case AtomicUpdate(address=Address(base=base), value=value):
            yield base, dtype_of(value), "update"
        case _:
            pass
    for value in walk_values(statement_values(statement)):
        match value:
            case Load(address=Address(base=base)) | Gather(base=base):
                yield base, dtype_of(value), "load"
            case _:
                pass


def binding_form(uses: Uses, *, native_half: bool) -> tuple[Form, DType]:
    """Return the form and the dtype of a storage binding."""
    dtypes = tuple(uses.dtypes)
    single = dtypes[0] if len(dtypes) == 1 else None
    half = native_half and single is not None and single.name == "f16" and not uses.updates
    if half and single is not None:
        return "elements", single
    if uses.updates or uses.narrow_stores:
        return "atomic", dtypes[0]
    if single is not None and width_of(single) == WORD:
        return "elements", single
    return "words", dtypes[0]


def local_form(uses: Uses) -> tuple[Form, DType] | None:
    """Return the form and the dtype of an array of a workgroup or of one invocation."""
    dtypes = tuple(uses.dtypes)
    if uses.updates:
        return ("atomic", dtypes[0]) if all(width_of(d) == WORD for d in dtypes) else None
    if len(dtypes) == 1:
        return "elements", dtypes[0]
    return ("words", dtypes[0]) if all(width_of(d) == WORD for d in dtypes) else None


def local_count(array: Array, size: int) -> int:
    """Return the number of elements of an array of ``size`` bytes of the program."""
    width = WORD if array.form != "elements" else width_of(array.dtype)
    return max(-(-size // width), 1)


def is_workgroup(reg: Reg) -> bool:
    """Return whether an allocation is workgroup memory."""
    return reg.type == SHARED_POINTER


def element_index(em: Emitter, pointers: Pointers, base: Value, offset: Expr, dtype: DType) -> str:
    """Return the index of an element, in elements of ``dtype`` from the start of its array."""
    _, before = pointers.resolve(base)
    found, width = scaled(before + offset), width_of(dtype)
    if found.scale % width == 0:
        factor = found.scale // width
        text = short(em, found.index)
        if factor == 1:
            return text
        if isinstance(text, Literal):
            return Literal(f"{int(text.removesuffix('i')) * factor}i")
        return f"({text} * {factor}i)"
    if width % found.scale == 0 and fits(em, found.index):
        text = short(em, found.index)
        return f"({text} / {width // found.scale}i)"
    raise em.unsupported(f"an access of {width} bytes at a multiple of {found.scale} bytes")


def lane_index(index: str, lane: int, step: str = "") -> str:
    """Return the index of a lane; ``step`` is the distance of lanes, 1 if empty."""
    if lane == 0:
        return index
    if step:
        return f"({index} + {lane}i * {step})"
    if isinstance(index, Literal):
        return Literal(f"{int(index.removesuffix('i')) + lane}i")
    return f"({addend(index)} + {lane}i)"


def _position(array: Array, index: str, per_word: int = 1) -> str:
    """Return the index in the array of an element, or of its word if it has its own words."""
    if not array.start:
        return bare(index)
    start = array.start if per_word == 1 else f"{array.start} * {per_word}i"
    return start if index == "0i" else f"{start} + {addend(index)}"


def load(em: Emitter, array: Array, dtype: DType, index: str) -> str:
    """Return the expression of an element."""
    width = width_of(dtype)
    if array.form == "elements":
        if array.element == "f16":
            return f"f32({array.name}[{_position(array, index, 2)}])"
        return f"{array.name}[{_position(array, index)}]"
    if width == WORD:
        word = _word(array, _position(array, index))
        return word if type_name(dtype) == "u32" else f"bitcast<{type_name(dtype)}>({word})"
    if width == 2 * WORD:
        at = em.keep(_pair_position(array, index), "at")
        return f"{PAIR}({_word(array, at)}, {_word(array, f'{at} + 1i')})"
    at = em.keep(_position(array, index, WORD // width), "at")
    shift = WORD // width - 1
    bits = f"u32({at} & {shift}i) * {8 * width}u"
    word = _word(array, f"{at} >> {2 if width == 1 else 1}u")
    if dtype.kind == "int":
        return f"extractBits(bitcast<i32>({word}), {bits}, {8 * width}u)"
    field_ = f"extractBits({word}, {bits}, {8 * width}u)"
    if dtype.kind == "bool":
        return f"({field_} != 0u)"
    return f"tw_{dtype}_value({field_})" if dtype.is_float else field_


def _pair_position(array: Array, index: str) -> str:
    own = Literal(f"{2 * int(index.removesuffix('i'))}i") if isinstance(index, Literal) else ""
    return _position(array, own or f"{index} * 2i")


def _word(array: Array, at: str) -> str:
    return f"atomicLoad(&{array.name}[{at}])" if array.form == "atomic" else f"{array.name}[{at}]"


def store(em: Emitter, array: Array, dtype: DType, index: str, value: str) -> None:
    """Write the store of an element."""
    width = width_of(dtype)
    if array.form == "elements":
        if array.element == "f16":
            em.line(f"{array.name}[{_position(array, index, 2)}] = f16({bare(value)});")
        else:
            em.line(f"{array.name}[{_position(array, index)}] = {bare(value)};")
        return
    if width == WORD:
        bits = value if type_name(dtype) == "u32" else f"bitcast<u32>({bare(value)})"
        _store_word(em, array, _position(array, index), bits)
        return
    if width == 2 * WORD:
        at, both = em.keep(_pair_position(array, index), "at"), em.keep(value)
        _store_word(em, array, at, f"{both}.x")
        _store_word(em, array, f"{at} + 1i", f"{both}.y")
        return
    at = em.keep(_position(array, index, WORD // width), "at")
    bits = em.keep(f"u32({at} & {WORD // width - 1}i) * {8 * width}u", "bits")
    word = f"{at} >> {2 if width == 1 else 1}u"
    mask = (1 << 8 * width) - 1
    field_ = em.keep(stored_bits(value, dtype), "field")
    em.line(f"atomicAnd(&{array.name}[{word}], ~({mask}u << {bits}));")
    em.line(f"atomicOr(&{array.name}[{word}], ({field_} & {mask}u) << {bits});")


def stored_bits(value: str, dtype: DType) -> str:
    """Return the bits of a narrow element as a word."""
    if dtype.kind == "bool":
        return f"select(0u, 1u, {bare(value)})"
    if dtype.is_float:
        return f"tw_{dtype}_bits({bare(value)})"
    return f"bitcast<u32>({bare(value)})" if dtype.kind == "int" else value


def _store_word(em: Emitter, array: Array, at: str, bits: str) -> None:
    if array.form == "atomic":
        em.line(f"atomicStore(&{array.name}[{at}], {bare(bits)});")
    else:
        em.line(f"{array.name}[{at}] = {bare(bits)};")


def word_of(array: Array, index: str) -> str:
    """Return the atomic word of an element of 32 bits."""
    return f"{array.name}[{_position(array, index)}]"
