"""LLVM text into machine code. An unsupported intrinsic can abort: run this in a worker."""

from __future__ import annotations

from functools import cache

from llvmlite import binding

from ...ir.errors import TilewrightError
from ...ir.target import Target
from ..cpu import resolve
from ..nvidia import Image, assemble, assembler, resolve_gpu
from ..nvidia.machine import TRIPLE
from ..processors import Cpu


class CodeGenerationError(TilewrightError):
    """LLVM refuses what was generated; a defect of Tilewright, with the text to report."""

    title = "Code generation failed"


@cache
def _initialize_all() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()


def target_machine(cpu: Cpu) -> binding.TargetMachine:
    """Give LLVM's description of a processor."""
    _initialize_all()
    return binding.Target.from_triple(cpu.triple).create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=2, reloc="pic", codemodel="small", abiname=cpu.abi
    )


def machine_for(target: Target) -> binding.TargetMachine:
    """Give LLVM's description of a target's machine."""
    if not target.is_gpu:
        return target_machine(resolve(target))
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
            str(error).strip(), hint="please report this with the program"
        ) from error
    return module


def _optimized(text: str, machine: binding.TargetMachine, opt: int) -> binding.ModuleRef:
    module = _parse(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=opt)
    # Vectors and unrolled tiles are explicit in the text: LLVM's own guesses only cost time.
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
        What :func:`emit_module` gave.
    target : Target
        The same target.
    opt : int
        LLVM's optimisation level, 0 to 3.

    Returns
    -------
    bytes
        A relocatable ELF object.

    Raises
    ------
    CodeGenerationError
        If LLVM cannot parse or verify the text.
    """
    machine = machine_for(target)
    return machine.emit_object(_optimized(text, machine, opt))


def optimized_text(text: str, target: Target, *, opt: int = 2) -> str:
    """Give the module after LLVM's passes, as text."""
    return str(_optimized(text, machine_for(target), opt))


def assembly(text: str, target: Target, *, opt: int = 2) -> str:
    """Give the machine code of a module as assembly text; PTX for a GPU."""
    machine = machine_for(target)
    return machine.emit_assembly(_optimized(text, machine, opt))


def image(text: str, target: Target, *, opt: int = 2) -> Image:
    """Compile a module of kernels to what a GPU loads.

    Parameters
    ----------
    text : str
        What :func:`emit_module` gave for a GPU.
    target : Target
        The same target.
    opt : int
        LLVM's optimisation level, 0 to 3.

    Returns
    -------
    Image
        PTX, and machine code with what it takes where the assembler is installed.

    Raises
    ------
    CodeGenerationError
        If LLVM cannot parse or verify the text.
    AssemblerError
        If ``ptxas`` refuses what LLVM made.
    """
    ptx = assembly(text, target, opt=opt)
    if assembler() is None:
        return Image(target.arch, ptx)
    made = assemble(ptx, target.arch)
    return Image(target.arch, ptx, made.content, made.resources)
