"""Generation of the WGSL shader of a kernel, with the description of its arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.kernel_errors import LaunchLimitError, SharedMemoryError
from ...ir.symbolic import Var, const_value
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Barrier, MachineOp, Reg
from ...ir.thread.operations.nvidia import TRAP
from ...ir.thread.visit import walk
from ...target.gpus import BLOCK_AXES, THREAD_AXES
from ...target.target import Target
from ...target.webgpu import DISPATCH, STORAGE_BINDINGS, WORKGROUP_STORAGE
from ..manifest import from_json, to_json
from .emitter import Emitter, UnsupportedShaderError
from .helpers import with_dependencies
from .memory import (
    Array,
    Pointers,
    binding_form,
    is_workgroup,
    local_count,
    local_form,
    width_of,
)
from .registers import declarations
from .statements import Statements
from .types import WORD

_FAIL = """\
@group(0) @binding({number}) var<storage, read_write> tw_error: array<atomic<u32>, 5>;

fn tw_fail(check: u32, value: vec2<u32>, bound: vec2<u32>) {{
    if atomicCompareExchangeWeak(&tw_error[0], 0u, check).exchanged {{
        atomicStore(&tw_error[1], value.x);
        atomicStore(&tw_error[2], value.y);
        atomicStore(&tw_error[3], bound.x);
        atomicStore(&tw_error[4], bound.y);
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Shader:
    """A shader and how to launch it.

    Parameters
    ----------
    name : str
        The symbol of the kernel, which contains the width of its indices.
    text : str
        The WGSL text; ``main`` is the entry point.
    symbols : int
        The number of integer parameters.
    bindings : tuple of int
        The pointer parameters that have a binding, in the order of the bindings.
    pointers : int
        The number of pointer parameters.
    buffers : int
        The number of those before the integer parameters; the scratch memory is after them.
    messages : tuple of str
        The texts of failed checks; if there are any, the last binding is the error record.
    folded : bool
        Whether ``blockIdx.x`` may exceed the limit of one dimension, so that it is folded.
    features : tuple of str
        The features of the adapter that the shader requires.
    sizes : tuple of str
        The bytes of the buffer of each binding, as terms of the integer parameters, which are named
        ``s0``, ``s1``, ...
    work : str
        The estimated number of instructions of a launch, as such a term.
    """

    name: str
    text: str
    symbols: int
    bindings: tuple[int, ...]
    pointers: int
    buffers: int
    messages: tuple[str, ...] = ()
    folded: bool = False
    features: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    work: str = "0"


def to_bytes(shaders: Sequence[Shader]) -> bytes:
    """Serialize the versions of one kernel."""
    return json.dumps([to_json(s) for s in shaders], sort_keys=True).encode()


def from_bytes(data: bytes) -> tuple[Shader, ...]:
    """Return the versions of one kernel.

    Examples
    --------
    >>> one = Shader("f", "fn main() {}", 1, (0,), 1, 1)
    >>> from_bytes(to_bytes([one])) == (one,)
    True
    """
    return tuple(from_json(Shader, item) for item in json.loads(data))


def emit_shaders(function: ThreadFunc, target: Target) -> tuple[Shader, ...]:
    """Return the shader of each version of a kernel.

    Parameters
    ----------
    function : ThreadFunc
        A kernel with a launch, after all passes.
    target : Target
        The target, whose features decide which types have a native form in memory.

    Raises
    ------
    UnsupportedShaderError
        If a statement has no form in a shader.
    LaunchLimitError
        If the kernel has more buffers than a shader can access.
    SharedMemoryError
        If the workgroup memory in words exceeds the limit.
    """
    return tuple(_emit(version, target) for version in function.versions)


def _emit(function: ThreadFunc, target: Target) -> Shader:
    if function.launch is None:
        raise UnsupportedShaderError(f"function {function.name!r} is not a kernel")
    em = Emitter(function, function.width.proved)
    pointers = Pointers(function.body)
    em.leaves_on_failure = not any(isinstance(s, Barrier) for s in walk(function.body))
    regs = [p for p in function.params if isinstance(p, Reg)]
    symbols = [p for p in function.params if isinstance(p, Var)]
    half = "f16" in target.features
    bound = [r for r in regs if r in pointers.uses]
    checks = any(isinstance(s, MachineOp) and s.operation is TRAP for s in walk(function.body))
    _check_count(function, bound, checks=checks)
    fields: list[str] = []
    for symbol in symbols:
        name = em.names.make(symbol.name)
        fields += [f"{name}: i32", f"{name}_high: u32"]
        value = f"sizes.{name}"
        if symbol in em.short:
            em.variables[symbol] = value, True
        else:
            em.variables[symbol] = f"vec2<u32>(bitcast<u32>({value}), {value}_high)", False
    declared: list[str] = []
    sizes_name = em.names.make("sizes")
    if sizes_name != "sizes":
        raise UnsupportedShaderError("the name of the parameters of a shader is in use")
    for k, reg in enumerate(bound):
        name = em.names.make(reg.name)
        form, dtype = binding_form(pointers.uses[reg], native_half=half)
        start = f"sizes.{name}_start"
        array = Array(name, "storage", form, dtype, start)
        pointers.arrays[reg] = array
        declared.append(
            f"@group(0) @binding({k + 1}) var<storage, read_write> {name}: array<{array.element}>;"
        )
    fields += [f"{pointers.arrays[r].name}_start: i32" for r in bound]
    fields += [f"blocks_{axis[-1]}: i32" for axis in BLOCK_AXES]
    declared += _locals(em, pointers, function)
    folded = _axes(em, function)
    statements = Statements(em, pointers, declarations(function.body))
    statements.body(function.body)
    text = _assembled(em, fields, declared, function, half=half, bound=len(bound))
    return Shader(
        function.name,
        text,
        len(symbols),
        tuple(regs.index(r) for r in bound),
        len(regs),
        next((k for k, p in enumerate(function.params) if isinstance(p, Var)), len(regs)),
        tuple(em.messages),
        folded,
        ("f16",) if "enable f16;" in text else (),
    )


def _check_count(function: ThreadFunc, bound: Sequence[Reg], *, checks: bool) -> None:
    count = len(bound) + checks
    if count > STORAGE_BINDINGS:
        names = ", ".join(r.name for r in bound) + (", and the record of checks" if checks else "")
        raise LaunchLimitError(
            f"the kernel accesses {count} buffers ({names}); the limit of webgpu is "
            f"{STORAGE_BINDINGS}",
            where=f"kernel {function.name!r}",
            hint="fuse fewer operations into one kernel",
            details={"bindings": count, "limit": STORAGE_BINDINGS},
        )


def _locals(em: Emitter, pointers: Pointers, function: ThreadFunc) -> list[str]:
    """Return the declarations of workgroup arrays, and register the others."""
    declared: list[str] = []
    total = 0
    for reg, size in pointers.allocations.items():
        uses = pointers.uses.get(reg)
        if uses is None:
            continue
        found = local_form(uses)
        if found is None:
            dtypes = ", ".join(map(str, uses.dtypes))
            raise em.unsupported(f"memory {reg.name!r} with elements of dtypes {dtypes}")
        form, dtype = found
        shared = is_workgroup(reg)
        name = em.names.make(reg.name)
        array = Array(name, "workgroup" if shared else "function", form, dtype)
        pointers.arrays[reg] = array
        if shared:
            count = local_count(array, size)
            total += count * max(WORD, width_of(dtype) if form == "elements" else WORD)
            declared.append(f"var<workgroup> {name}: array<{array.element}, {count}>;")
    if total > WORKGROUP_STORAGE:
        raise SharedMemoryError(
            f"a workgroup needs {total} bytes of memory in words; the limit of webgpu is "
            f"{WORKGROUP_STORAGE}",
            where=f"kernel {function.name!r}",
            hint="use smaller tiles, or keep a buffer in scope 'local' or 'global'",
            details={"bytes": total, "limit": WORKGROUP_STORAGE},
        )
    return declared


def _axes(em: Emitter, function: ThreadFunc) -> bool:
    """Write the indices of the launch; return whether ``blockIdx.x`` is folded."""
    folded = False
    for axis in function.launch.axes if function.launch is not None else ():
        letter = axis.tag[-1]
        name = em.names.make(axis.var.name)
        em.variables[axis.var] = name, True
        if axis.tag in THREAD_AXES:
            em.line(f"let {name} = i32(tw_thread.{letter});")
            continue
        upper = const_value(axis.extent) or axis.extent.upper
        if letter != "x" or (upper is not None and upper <= DISPATCH):
            if letter == "z":
                em.line(f"let {name} = i32(tw_block.z) % sizes.blocks_z;")
            else:
                em.line(f"let {name} = i32(tw_block.{letter});")
            continue
        folded = True
        em.line(f"let {name} = i32(tw_block.z) / sizes.blocks_z * {DISPATCH}i + i32(tw_block.x);")
        em.line(f"if {name} >= sizes.blocks_x {{")
        em.line("    return;")
        em.line("}")
    return folded


def _assembled(
    em: Emitter,
    fields: list[str],
    declared: list[str],
    function: ThreadFunc,
    *,
    half: bool,
    bound: int,
) -> str:
    body = "\n".join(em.lines)
    parts = ["struct Sizes {\n" + "".join(f"    {f},\n" for f in fields) + "}"]
    parts.append("\n".join(["@group(0) @binding(0) var<uniform> sizes: Sizes;", *declared]))
    if em.messages:
        parts.append(_FAIL.format(number=bound + 1).rstrip())
    parts += with_dependencies(body)
    extents = (
        {a.tag: const_value(a.extent) or 1 for a in function.launch.axes}
        if (function.launch is not None)
        else {}
    )
    sizes = ", ".join(str(extents.get(tag, 1)) for tag in THREAD_AXES)
    builtins = "@builtin(workgroup_id) tw_block: vec3<u32>"
    builtins += ", @builtin(local_invocation_id) tw_thread: vec3<u32>"
    parts.append(f"@compute @workgroup_size({sizes})\nfn main({builtins}) {{\n{body}\n}}")
    text = "\n\n".join(parts) + "\n"
    return f"enable f16;\n\n{text}" if half and "array<f16>" in text else text
