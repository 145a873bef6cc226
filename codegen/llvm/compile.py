"""Compilation of LLVM text to machine code.

An unsupported intrinsic can abort the process, so compilation runs in a worker process.
"""

from __future__ import annotations

from functools import cache

from ...errors import TilewrightError
from ...target.cpus import Cpu
from ...target.gpus import TRIPLE, resolve_gpu
from ...target.target import Target
from ..nvidia import Image, assemble, assembler
from .emitter import REPORT
from .exclusive import binding
from .processor import resolve


class CodeGenerationError(TilewrightError):
    """Generated LLVM IR that LLVM rejects, which is a bug in Tilewright."""

    title = "Code generation failure"


@cache
def _initialize_all() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()


def target_machine(cpu: Cpu, opt: int = 2) -> binding.TargetMachine:
    """Return the LLVM target machine of a CPU.

    With ``opt`` 0 it generates code in linear time, and with 1 it selects and schedules
    instructions with fewer optimizations than with 2 or 3.
    """
    _initialize_all()
    return binding.Target.from_triple(cpu.triple).create_target_machine(
        cpu=cpu.name,
        features=cpu.features,
        opt=0 if opt <= 0 else 1 if opt == 1 else 2,
        reloc="pic",
        codemodel="small",
        abiname=cpu.abi,
    )


def machine_for(target: Target, opt: int = 2) -> binding.TargetMachine:
    """Return the LLVM target machine of a target."""
    if not target.is_gpu:
        return target_machine(resolve(target), opt)
    _initialize_all()
    gpu = resolve_gpu(target)
    return binding.Target.from_triple(TRIPLE).create_target_machine(
        cpu=gpu.name, features=gpu.features, opt=3
    )


def _parse(text: str) -> binding.ModuleRef:
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CodeGenerationError(
            str(error).strip(),
            hint=REPORT,
        ) from error
    return module


def _optimized(text: str, machine: binding.TargetMachine, opt: int) -> binding.ModuleRef:
    module = _parse(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=opt)
    # Vectors and unrolled tiles are explicit in the IR, so LLVM's vectorizers only cost time.
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    return module


def compile_text(text: str, target: Target, *, opt: int = 2) -> bytes:
    """Compile a module of LLVM text to an object file.

    Parameters
    ----------
    text : str
        The result of :func:`emit_module`.
    target : Target
        The target that the module was emitted for.
    opt : int
        The LLVM optimization level, 0 to 3.

    Returns
    -------
    bytes
        A relocatable ELF object.

    Raises
    ------
    CodeGenerationError
        If LLVM cannot parse or verify the text.
    """
    machine = machine_for(target, opt)
    return machine.emit_object(_optimized(text, machine, opt))


def optimized_text(text: str, target: Target, *, opt: int = 2) -> str:
    """Return the optimized LLVM IR of a module as text."""
    return str(_optimized(text, machine_for(target, opt), opt))


def assembly(text: str, target: Target, *, opt: int = 2) -> str:
    """Return the assembly text of a module; PTX for a GPU."""
    machine = machine_for(target, opt)
    return machine.emit_assembly(_optimized(text, machine, opt))


def image(text: str, target: Target, *, opt: int = 2) -> Image:
    """Compile a module of GPU kernels to a loadable image.

    Parameters
    ----------
    text : str
        The result of :func:`emit_module` for a GPU.
    target : Target
        The target that the module was emitted for.
    opt : int
        The LLVM optimization level, 0 to 3.

    Returns
    -------
    Image
        PTX; with the assembler installed also machine code and resource usage.

    Raises
    ------
    CodeGenerationError
        If LLVM cannot parse or verify the text.
    AssemblerError
        If ``ptxas`` rejects the PTX.
    """
    ptx = assembly(text, target, opt=opt)
    if assembler() is None:
        return Image(target.arch, ptx)
    made = assemble(ptx, target.arch)
    return Image(target.arch, ptx, made.content, made.resources)
