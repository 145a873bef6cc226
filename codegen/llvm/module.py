"""Emission of an LLVM module as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.symbolic import Var
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Data, Source
from ...ir.thread.types import PointerType
from ...target.cpus import FAMILIES, Cpu
from ...target.target import Target
from .emitter import Emitter, ModuleState
from .locations import Locations
from .nvptx import kernel_attributes, open_kernel
from .processor import resolve
from .statements import body
from .types import type_name

_PROTECTED: Final = (
    "!llvm.module.flags = !{!1000000, !1000001}",
    '!1000000 = !{i32 8, !"cf-protection-branch", i32 1}',
    '!1000001 = !{i32 8, !"cf-protection-return", i32 1}',
)
"""The marks of Control-flow Enforcement Technology; numbers of nodes need not be consecutive."""


def emit_module(functions: Sequence[ThreadFunc], target: Target, *, sections: bool = False) -> str:
    """Return functions as the text of one LLVM module; equal functions have equal text.

    Parameters
    ----------
    functions : sequence of ThreadFunc
        The functions in order; they may call each other by name.
    target : Target
        The target of the module.
    sections : bool
        Whether each function has its own section, so that a linker can remove unused ones.

    Returns
    -------
    str
        LLVM IR, the input of :func:`compile_text`.

    Examples
    --------
    >>> from ...ir.dtype import i32
    >>> from ...ir.thread.nodes import Const, Return, VectorType
    >>> zero = Return(Const(0, VectorType(i32)))
    >>> text = emit_module([ThreadFunc("f", (), (zero,), VectorType(i32))], Target("cpu"))
    >>> "define i32 @f()" in text
    True
    """
    state = ModuleState()
    state.sections = sections and not target.is_gpu and target.arch != "wasm32"
    return _module(functions, target, state)


def emit_located(functions: Sequence[ThreadFunc], target: Target) -> tuple[str, tuple[Source, ...]]:
    """Return the text of a module as :func:`emit_module` does, with debug locations.

    Returns
    -------
    tuple of str and tuple of Source
        The text, and the statements by line of its debug information; see :func:`instructions`.
    """
    locations = Locations()
    text = _module(functions, target, ModuleState(locations))
    return text, tuple(locations.sources)


def _module(functions: Sequence[ThreadFunc], target: Target, state: ModuleState) -> str:
    state.defined.update(f.name for f in functions)
    state.arch = target.arch or "x86_64"
    family = FAMILIES.get(state.arch)
    cpu = None if target.is_gpu else resolve(target)
    of = family or cpu
    state.fused = of is None or of.has_fma
    state.halves = of is None or of.has_f16_conversion
    state.vector_bits = cpu.vector_bits if cpu else 0
    texts = [_function(state, f, target) for f in functions]
    parts = [
        *(state.globals[name] for name in sorted(state.globals)),
        *(_data(state.data[name]) for name in sorted(state.data)),
        *state.outlined,
        *texts,
        *(
            f"declare {signature}"
            for name, signature in sorted(state.declarations.items())
            if name not in state.defined
        ),
        *(() if target.is_gpu else (_attributes(resolve(target), state),)),
        *((state.locations.text(),) if state.locations else state.nodes),
        *(_PROTECTED if state.arch == "x86_64" and not target.is_gpu else ()),
    ]
    return "\n".join(parts) + "\n"


def _function(state: ModuleState, function: ThreadFunc, target: Target) -> str:
    em = Emitter(state, function)
    params: list[str] = []
    for k, param in enumerate(function.params):
        operand = f"%p{k}"
        if isinstance(param, Var):
            em.bind(param, operand)
            params.append(f"i64 {operand}")
            continue
        em.fixed[param] = operand
        alone = isinstance(param.type, PointerType) and param in function.distinct
        params.append(f"{type_name(param.type)}{' noalias' if alone else ''} {operand}")
    if function.launch is not None:
        open_kernel(em, function.launch)
    body(em, function.body)
    em.line("ret void" if function.result is None else "unreachable")
    if function.launch is not None:
        attributes = kernel_attributes(function, function.launch, target)
        header = f"define ptx_kernel void @{function.name}({', '.join(params)})"
        return em.finish(header, attributes)
    result = "void" if function.result is None else type_name(function.result)
    linkage = "define" if function.exported else "define internal"
    return em.finish(f"{linkage} {result} @{function.name}({', '.join(params)})")


def _data(data: Data) -> str:
    kind = "global" if data.mutable else "constant"
    content = "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data.content
    )
    size = len(data.content)
    initial = "zeroinitializer" if not any(data.content) else f'c"{content}"'
    scope = "internal" if data.mutable else "private unnamed_addr"
    return f"@{data.name} = {scope} {kind} [{size} x i8] {initial}, align {data.alignment}"


def _attributes(cpu: Cpu, state: ModuleState) -> str:
    width, features = cpu.vector_bits, cpu.features
    if not any("vpdpbusd" in name for name in state.declarations):
        # LLVM 22 miscompiles a sum of 16 products of u8 and i8: it selects vpdpbusd and omits the
        # addition of the four partial sums. So the feature is disabled unless a kernel uses it.
        features = features.replace("+avx512vnni", "-avx512vnni").replace("+avxvnni", "-avxvnni")
    # With unwind tables, debuggers and profilers see the callers of a function, and exceptions of
    # the host pass through.
    unwound = "" if state.arch == "wasm32" else "uwtable "
    return (
        f"attributes #0 = {{ nounwind {unwound}"
        f'"target-cpu"="{cpu.name}" "target-features"="{features}" '
        f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}'
    )
