"""The table of the error messages of calls, shared by all loaders.

The in-process loader formats these templates itself. Exported libraries contain them as C code, and
the exported Python and JavaScript loaders contain those that they raise before a call. So one
mistake has one text, however the program is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Final

from ..ir.dtype import DTYPES


class Code(IntEnum):
    """The error codes of the C interface; 0 marks errors that only a loader raises."""

    OK = 0
    DTYPE = 1
    RANK = 2
    SHAPE = 3
    STRIDES = 4
    ALIGNMENT = 5
    READ_ONLY = 6
    DEVICE = 7
    ALIAS = 8
    FACT = 9
    CHECK = 10
    SIZE = 11
    MEMORY = 12
    KERNEL = 13
    NULL = 14
    VERSION = 15
    WEIGHTS = 16
    PROCESSOR = 17
    INTERNAL = 18
    THREADS = 19
    STATE = 20
    CANCELED = 21
    LIMIT = 22
    WORKSPACE = 23
    LEVEL = 24


IN_FUNCTION: Final = "function '{function}'"
IN_KERNEL: Final = "function '{function}', kernel '{kernel}' (binding '{binding}')"
IN_PARAMETER: Final = "function '{function}', parameter '{parameter}' ({annotation})"
IN_RESULT: Final = "function '{function}', result '{result}' ({annotation})"


class Message(Enum):
    """An error message: its code in the C interface, and a template of named fields.

    ``{values}`` is empty or `` for n = 3, m = 4``; ``{term}`` is the text of :func:`term_text`.

    Examples
    --------
    >>> Message.RANK.format(expected=2, actual=1, shape=shape_text([6]))
    'expected rank 2, got rank 1 (shape (6,))'
    >>> Message.RANK.code
    <Code.RANK: 2>
    """

    code: Code
    template: str

    def __init__(self, code: Code, template: str) -> None:
        """Name the parts of the value."""
        self.code = code
        self.template = template

    def format(self, **fields: object) -> str:
        """Return the text of the message with its fields filled in."""
        return self.template.format(**fields)

    ARGUMENT_COUNT = (
        Code.OK,
        "number of arguments: expected {expected}, got {actual}: {signature}",
    )
    UNKNOWN_ARGUMENT = Code.OK, "no parameter '{parameter}'{similar} in {signature}"
    DUPLICATE_ARGUMENT = (
        Code.OK,
        "parameter '{parameter}' has two values, argument {position} and by name: {signature}",
    )
    MISSING_ARGUMENT = Code.OK, "no argument for {names}: {signature}"
    ARGUMENT_TYPE = Code.DTYPE, "expected {kind}, got {actual_type}{reason}"
    INTEGER_RANGE = Code.SIZE, "expected a 64-bit integer, got {actual}"

    DTYPE = Code.DTYPE, "expected dtype {dtype}, got {actual_dtype}"
    RANK = Code.RANK, "expected rank {expected}, got rank {actual} (shape {shape})"
    DEVICE = Code.DEVICE, "expected a tensor on {device}, got one on {actual_device}"
    STRIDES = (
        Code.STRIDES,
        "expected compact row-major elements, got strides {strides} (in elements) of shape {shape}",
    )
    ALIGNMENT = Code.ALIGNMENT, "expected an address that is a multiple of {bytes} bytes"
    READ_ONLY = (
        Code.READ_ONLY,
        "the function writes this parameter ({access}), but the argument is read-only",
    )
    UNSUPPORTED = Code.INTERNAL, "the argument is not a supported tensor"
    DIMENSION = Code.SHAPE, "dimension {dim} of shape {shape}: expected {term}, got {actual}"
    ELEMENT = Code.SHAPE, "element {index}: expected {term}, got {actual}"
    INTEGER = Code.SHAPE, "expected {term}, got {actual}"
    UNKNOWN_RANK = Code.SHAPE, "expected rank {expected}, got rank {actual} (shape {shape})"
    STRIDE = Code.STRIDES, "dimension {dim}: expected stride {term}, got {actual} (in elements)"
    ALIAS = Code.ALIAS, "'{parameter}' ({access}) shares memory with '{other}' ({other_access})"

    OUTPUT_COUNT = Code.OK, "number of outputs: expected {expected}, got {actual}: {signature}"
    OUTPUT_SHAPE = Code.SHAPE, "expected shape {result_shape}, got shape {shape}"
    OUTPUT_ALIAS = Code.ALIAS, "the output shares memory with {role} '{other}'"
    WORKSPACE = (
        Code.WORKSPACE,
        "the call needs a workspace of {bytes} bytes, got {actual} bytes",
    )
    WORKSPACE_ALIGNMENT = (
        Code.ALIGNMENT,
        "the address of the workspace is not a multiple of {bytes} bytes",
    )
    NULL_WORKSPACE = Code.NULL, "the workspace of {bytes} bytes is null"
    WORKSPACE_ALIAS = Code.ALIAS, "the workspace shares memory with {role} '{other}'"
    WORKSPACE_SIZE = Code.SIZE, "the size of the workspace is negative: {actual}"
    LIMIT = (
        Code.LIMIT,
        "cannot allocate {bytes} bytes of workspace: {actual} of {expected} bytes are in use",
    )
    STRUCTURE_SIZE = (
        Code.VERSION,
        "the size of {structure} is {actual} bytes; the library requires at least {expected}",
    )
    STRUCTURE_FIELDS = (
        Code.VERSION,
        "{structure} has non-zero fields beyond byte {expected}, which the library does not know",
    )
    ARENA_LIMIT = Code.SIZE, "arena_limit is {actual}; it must be at least 0"
    NULL_NEEDS = Code.NULL, "the pointer that receives the needs is null"

    NULL_TENSOR = Code.NULL, "the tensor is null"
    INVALID_RANK = Code.NULL, "the number of dimensions must be between 0 and 64, got {actual}"
    NULL_SHAPE = Code.NULL, "the shape is null"
    NEGATIVE_DIMENSION = Code.NULL, "dimension {dim} is negative: {actual}"
    INVALID_DIMENSION = Code.NULL, "dimension {dim} is not an integer: {actual}"
    TOO_MANY_ELEMENTS = Code.NULL, "shape {shape} has more elements than can be addressed"
    DATA_LENGTH = Code.SHAPE, "shape {shape} has {expected} elements, but data has {actual}"
    NULL_DATA = Code.NULL, "the data pointer is null"
    NULL_RESULT = Code.NULL, "the pointer that receives result {index} is null"

    BOUND = Code.FACT, "symbol out of range: {condition} is false{values}"
    FACT = Code.FACT, "the program assumes {condition}, which is false{values}"
    CHECK = Code.CHECK, "check failed{values}: {condition}"
    DIVISOR = Code.SIZE, "division by zero: {divisor} = 0{values}"
    NEGATIVE_SIZE = Code.SIZE, "size {size} is negative: {actual}"
    OVERFLOW = Code.SIZE, "size {size} overflows: sizes must be less than 2**60"
    MEMORY = Code.MEMORY, "cannot allocate {bytes} bytes for {storage}"
    LIBRARY = Code.INTERNAL, "library function '{symbol}' returned error code {actual}"
    DEVICE_OPERATION = Code.INTERNAL, "device operation '{operation}' failed{values}"
    STOPPED = Code.INTERNAL, "the call was stopped in loop '{loop}'"
    LAUNCH = Code.INTERNAL, "launch of kernel '{kernel}' failed with device error {actual}"
    BINDING_LIMIT = (
        Code.SIZE,
        "an argument of kernel '{kernel}' has {bytes} bytes; a shader can access {limit} bytes",
    )
    GRID = (
        Code.INTERNAL,
        "grid dimension {axis} has {actual} thread blocks, expected at most {expected}",
    )
    BOUNDS = Code.KERNEL, "{text} (index {actual}, extent {expected})"
    RANGE = Code.KERNEL, "{text} (value {actual}, exclusive upper bound {expected})"
    RANGE_BELOW = Code.KERNEL, "{text} (value {actual}, least value {expected})"
    RANGE_UNSIGNED = (
        Code.KERNEL,
        "{text} (value {large}, exclusive upper bound {expected})",
    )
    KERNEL = Code.KERNEL, "kernel failed with code {code}: {text} ({first}, {second})"
    CANCELED = Code.CANCELED, "'parallel' of the runtime returned code {code}"
    UNKNOWN = Code.INTERNAL, "{condition} failed{values}"

    NULL_MODEL = Code.NULL, "the model is null"
    CLOSED = Code.NULL, "the model is closed"
    NULL_OUTPUT = Code.NULL, "the pointer that receives the model is null"
    NULL_RUNTIME = Code.NULL, "the runtime is null"
    NULL_ALLOCATOR = Code.NULL, "'alloc' or 'free' of the runtime is null"
    ALLOC_ALIGNMENT = (
        Code.ALIGNMENT,
        "'alloc' of the runtime returned an address that is not a multiple of {expected} bytes",
    )
    RUNTIME_SIZE = (
        Code.VERSION,
        "the runtime has a size of {actual} bytes, but the library requires at least {expected}",
    )
    RUNTIME_FIELDS = (
        Code.VERSION,
        "the runtime has unknown fields that are not zero, after the first {expected} bytes",
    )
    RUNTIME_VERSION = (
        Code.VERSION,
        "the runtime has ABI version {actual}, but the library requires {expected}",
    )
    RUNTIME_FLAGS = (
        Code.VERSION,
        "the runtime has flags {actual}; ABI version 2 defines only flag 1",
    )
    LIBRARY_VERSION = (
        Code.OK,
        "the library has ABI version {actual}, but the loader requires {expected}",
    )
    THREADS = Code.THREADS, "expected 1 to {expected} threads, got {actual}"
    PROCESSOR = Code.PROCESSOR, "this processor lacks {feature}, which the library requires"
    LEVEL = Code.LEVEL, "the library has no level '{level}'; its levels are {names}"
    LEVEL_PROCESSOR = (
        Code.PROCESSOR,
        "this processor lacks {feature}, which level '{level}' requires",
    )
    NULL_WEIGHTS = Code.WEIGHTS, "the weights are null"
    WEIGHTS_ALIGNMENT = Code.ALIGNMENT, "the weights must be aligned to 16 bytes"
    WEIGHTS_SIZE = Code.WEIGHTS, "expected weights of {expected} bytes, got {actual} bytes"
    WEIGHTS_HEADER = Code.WEIGHTS, "the header of the weights is not that of the exported file"
    WEIGHTS_MISSING = (
        Code.WEIGHTS,
        "tensor '{tensor}' is missing in the weights; expected {expected_type}",
    )
    WEIGHTS_TYPE = (
        Code.WEIGHTS,
        "tensor '{tensor}' of the weights: expected {expected_type}, got {actual_type}",
    )
    WEIGHTS_LAYOUT = (
        Code.WEIGHTS,
        "tensor '{tensor}' is not at the offset of this library: run 'tilewright weights pack'",
    )
    WEIGHTS_EXTRA = Code.WEIGHTS, "tensor '{tensor}' of the weights is not one of this library"
    WEIGHTS_END = (
        Code.WEIGHTS,
        "the weights end within tensor '{tensor}': expected {expected} bytes, got {actual} bytes",
    )
    WEIGHTS_FORMAT = (
        Code.WEIGHTS,
        "expected a safetensors file with tensor '{tensor}', got {actual} bytes without its header",
    )
    WEIGHTS_ROOT = Code.WEIGHTS, "the sha256 of the weights is not the expected one"
    WEIGHTS_BUSY = Code.WEIGHTS, "another thread is updating the weights"
    WEIGHTS_VERSIONS = (
        Code.WEIGHTS,
        "{expected} versions of the weights are in use by calls and states",
    )
    WEIGHTS_BLOCK = (
        Code.WEIGHTS,
        (
            "block {index} of {expected} of the weights, bytes {first} to {second} of the file, is "
            "damaged: expected sha256 {listed}, got {found}; tensors in it: {tensors}"
        ),
    )
    WEIGHTS_DIGEST = Code.WEIGHTS, "the sha256 of the weights is not that of the exported file"
    NULL_STATE = Code.NULL, "the state is null"
    OTHER_STATE = Code.STATE, "the state belongs to another model"
    BUSY_STATE = Code.STATE, "another call is using the state"
    FAILED_STATE = (
        Code.STATE,
        "an earlier call failed after it had begun to write the state; reset the state",
    )
    STATE_SIZE = Code.SIZE, "symbol '{symbol}': expected 0 to {expected}, got {actual}"
    MODEL_MEMORY = Code.MEMORY, "cannot allocate memory for the model"
    ALLOCATION = Code.MEMORY, "cannot allocate {bytes} bytes"


_DTYPE_NAMES: Final = {
    name: d.name for d in DTYPES.values() for name in (d.stored, d.torch) if name
}  # fmt: skip


def dtype_text(dtype: object) -> str:
    """Return the name of a dtype of NumPy or PyTorch, as in annotations where it has one.

    Examples
    --------
    >>> dtype_text("torch.float64"), dtype_text(">f4")
    ('f64', '>f4')
    """
    name = str(dtype).removeprefix("torch.")
    return _DTYPE_NAMES.get(name, name)


def shape_text(shape: Sequence[object]) -> str:
    """Return a shape as Python prints a tuple.

    Examples
    --------
    >>> shape_text([3]), shape_text([2, 3])
    ('(3,)', '(2, 3)')
    """
    dims = ", ".join(map(str, shape))
    return f"({dims},)" if len(shape) == 1 else f"({dims})"


def strides_text(strides: Sequence[int], unit: int) -> str:
    """Return strides in elements, from strides of which ``unit`` are one element.

    Examples
    --------
    >>> strides_text([24, 6], 4)
    '(6, 3/2)'
    """
    return shape_text([Fraction(s, unit) for s in strides])


def values_text(values: Mapping[str, int]) -> str:
    """Return the values of symbols as a suffix of a condition.

    Examples
    --------
    >>> values_text({"n": 3, "m": 4})
    ' for n = 3, m = 4'
    """
    known = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f" for {known}" if known else ""


def term_text(term: str, expected: int, values: Mapping[str, int]) -> str:
    """Return an expected value: the term, its value, and the symbols that it depends on.

    Examples
    --------
    >>> term_text("24", 24, {}), term_text("n", 6, {"n": 6})
    ('24', 'n = 6 from the other arguments')
    >>> term_text("n * 2", 12, {"n": 6})
    'n * 2 = 12 (with n = 6 from the other arguments)'
    """
    if term == str(expected):
        return term
    meaning = f"{term} = {expected}"
    if term in values:
        return f"{meaning} from the other arguments"
    known = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"{meaning} (with {known} from the other arguments)" if known else meaning
