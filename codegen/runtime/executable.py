"""Executables: native functions loaded from an artifact, and the constants they use."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ...ir.module import Array, Constant, MissingConstantError, UnknownFunctionError
from ...target.target import Target
from ..artifact import Artifact
from ..build.build_objects import host_target
from ..build.native_library import Library
from ..build.rtlib_object import rtlib_object_code
from ..build.worker_pool import CompileJob, default_pool
from ..errors import CompileError
from ..libraries import library_address
from ..lower.host.entry_wrappers import CALL, INTO, public_name
from ..manifest import FunctionSpec
from ..nvidia import Image, disassemble
from .device import Device, RemoteDevice, device_of
from .device_tensor import DeviceTensor
from .function import ExternalAddresses, NativeFunction
from .profile import MemoryPlan, Profile, make_profile, memory_plan
from .remote import RemoteFunction
from .table import ProviderError, RuntimeTable, default_table


class Executable:
    """Compiled functions, which are safe to call from several threads at once.

    ``exe(x)`` calls ``main``; ``exe["name"]`` returns another function. Arguments are NumPy arrays
    or tensors that support DLPack; results are NumPy arrays that own native memory.

    Parameters
    ----------
    artifact : Artifact
        The result of the compilation.
    constants : Mapping of str to Constant
        The module's constants; loaded when a function that uses them is first called.
    table : RuntimeTable, optional
        Provider of memory and threads for native code; by default the table of the process.
    compiled : int
        Number of objects that were compiled and not found in the cache.

    Examples
    --------
    >>> import numpy as np
    >>> from tilewright.codegen import compile
    >>> from tilewright.ir.script import parse
    >>> exe = compile(
    ...     parse('''
    ... n = symbols("n", lower=0)
    ...
    ... @prim_func
    ... def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         y[i] = x[i] * 0.5
    ... ''')
    ... )
    >>> exe
    <Executable for Target('cpu'): halve(x: Tensor((n,), f32)) -> f32; 1 kernel>
    >>> exe(np.array([2, 4], np.float32))
    array([1., 2.], dtype=float32)
    >>> y = np.empty(2, np.float32)
    >>> exe["halve"].into(np.array([8, 6], np.float32), y)
    >>> y
    array([4., 3.], dtype=float32)
    """

    def __init__(
        self,
        artifact: Artifact,
        constants: Mapping[str, Constant],
        *,
        table: RuntimeTable | None = None,
        compiled: int = 0,
    ) -> None:
        """Load the machine code."""
        self.artifact = artifact
        self.compiled = compiled
        self._constants = {**constants, **artifact.constants}
        self._arrays: dict[str, Array | DeviceTensor] = {}
        self._lock = threading.RLock()
        self._table = table
        self._device: Device | None = None
        self._functions: dict[str, NativeFunction] = {}
        self._preparing: dict[str, NativeFunction] = {}
        self._main: NativeFunction | None = None
        if table is not None and artifact.target.is_gpu:
            raise ProviderError(
                f"{artifact.target} uses the runtime table of its device, got another table",
                hint="omit the argument 'table'",
            )
        # Programs for CUDA can be compiled on machines without a GPU, so they are loaded later.
        if artifact.target.kind != "cuda":
            self._load()

    def _load(self) -> None:
        """Open the device, if any, and bind the functions, unless that was done already."""
        with self._lock:
            if self._functions:
                return
            self._device = device_of(self.artifact.target)
            functions = self._bind(self._device)
            for name, function in functions.items():
                function.in_place = functions.get(public_name(name) + INTO)
            self._preparing = {
                result.name: function
                for function in functions.values()
                if function.spec.prepares
                for result in function.spec.results
            }
            self._main = functions.get("main")
            self._functions = functions

    def _bind(self, device: Device | None) -> dict[str, NativeFunction]:
        artifact, host = self.artifact, host_target(self.artifact.target)
        objects = [artifact.objects[name] for name in sorted(artifact.objects)]
        library = Library([rtlib_object_code(host), *objects], host)
        handles: Mapping[str, int] = {} if device is None else device.load(artifact)
        chosen = self._table or default_table(artifact.threads)
        kind = RemoteFunction if isinstance(device, RemoteDevice) else NativeFunction
        return {
            spec.name: kind(
                spec, library, chosen if device is None else device.table, self._fetch,
                ExternalAddresses(
                    tuple(library_address(name) for name in spec.libraries),
                    tuple(handles[name] for name in spec.kernels),
                    device,
                ),
            )
            for spec in artifact.functions
        }  # fmt: skip

    def __repr__(self) -> str:
        """Return functions, target and number of kernels as one line of text."""
        functions = ", ".join(self.spec(name).signature(name) for name in self.names)
        count = len(self.kernels)
        return (
            f"<Executable for {self.target}: {functions}; "
            f"{count} kernel{'' if count == 1 else 's'}>"
        )

    def __call__(self, *arguments: Any) -> Any:
        """Call ``main``, or the only function."""
        function = self._main or self._only()
        return function(*arguments)

    def _only(self) -> NativeFunction:
        self._load()
        if self._main is not None:
            return self._main
        names = self.names
        if len(names) != 1:
            raise UnknownFunctionError(
                "no function 'main' to call", hint=f"functions are {', '.join(map(repr, names))}"
            )
        self._main = self[names[0]]
        return self._main

    def __getitem__(self, name: str) -> NativeFunction:
        """Return a function by name.

        Raises
        ------
        UnknownFunctionError
            If no function has this name; the hint lists the names.
        """
        self._load()
        known = (self._functions.get(name + ending) for ending in ("", CALL, INTO))
        found = next((f for f in known if f is not None), None)
        if found is None:
            raise UnknownFunctionError(
                f"no function {name!r}", hint=f"functions are {', '.join(map(repr, self.names))}"
            )
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        shown = (f.name for f in self.artifact.functions if not f.prepares)
        return tuple(dict.fromkeys(public_name(n) for n in shown))

    @property
    def cached(self) -> bool:
        """True if all machine code was found in the cache."""
        return self.compiled == 0

    @property
    def target(self) -> Target:
        """The target of the compilation."""
        return self.artifact.target

    @property
    def device(self) -> Device | None:
        """The device that runs the kernels; None for a CPU target."""
        self._load()
        return self._device

    def _fetch(self, keys: Sequence[str]) -> list[tuple[int, object]]:
        with self._lock:
            return [self._resident_constant(key) for key in keys]

    def _resident_constant(self, key: str) -> tuple[int, object]:
        """Return the address of a constant in the memory that kernels read, and its owner."""
        value = self._constant(key)
        if isinstance(value, DeviceTensor):
            return value.address, value
        if isinstance(self._device, RemoteDevice):
            tensor = self._device.upload(value)
            self._arrays[key] = tensor
            return tensor.address, tensor
        return value.ctypes.data, value

    def _constant(self, key: str) -> Array | DeviceTensor:
        """Return a constant: a result of ``prepare``, or a constant of the module."""
        if key not in self._arrays and key in self._preparing:
            self._run(self._preparing.pop(key))
        if key not in self._arrays:
            if key not in self._constants:
                raise MissingConstantError(
                    f"no constant {key!r}",
                    hint="add it to the constants of the module, or return it from prepare()",
                )
            self._arrays[key] = _load_compact(self._constants[key])
        return self._arrays[key]

    def _run(self, prepare: NativeFunction) -> None:
        """Run weight transforms and store their results as constants."""
        value: object = prepare.resident()
        names = [r.name for r in prepare.spec.results]
        results = cast("tuple[Array, ...]", value if isinstance(value, tuple) else (value,))
        self._arrays.update(zip(names, results, strict=True))

    def profile(self, *arguments: Any, function: str = "main", repeats: int = 5) -> Profile:
        """Call a function several times and measure every launch.

        Parameters
        ----------
        *arguments
            The arguments of the call; parameters written in place are written ``repeats + 1``
            times.
        function : str
            Name of the function.
        repeats : int
            Number of measured calls, after one warm-up call.

        Returns
        -------
        Profile
            Median times in µs.
        """
        chosen = self._function(function)
        chosen.timed(arguments)
        return make_profile(chosen.spec, [chosen.timed(arguments) for _ in range(repeats)])

    def memory(
        self, shapes: Mapping[str, int] | None = None, *, function: str = "main"
    ) -> MemoryPlan:
        """Plan the arena for values of the symbols: size, peak, and the offset of each storage."""
        return memory_plan(self.spec(function), shapes or {})

    def constants(self) -> dict[str, Array]:
        """Load the constants that the functions use, except results of ``prepare``, by name."""
        prepared = {r.name for f in self.artifact.functions if f.prepares for r in f.results}
        used = sorted({k for f in self.artifact.functions for k in f.constants} - prepared)
        return {k: _load_compact(self._constants[k]) for k in used if k in self._constants}

    def _function(self, name: str) -> NativeFunction:
        return self._main or self._only() if name == "main" else self[name]

    def spec(self, function: str = "main") -> FunctionSpec:
        """Return the specification of a function: parameters, results, launches, storages."""
        specs = {f.name: f for f in self.artifact.functions}
        main = "main" if "main" in specs or len(self.names) != 1 else self.names[0]
        name = main if function == "main" else function
        found = next((specs[name + e] for e in ("", CALL, INTO) if name + e in specs), None)
        return self[function].spec if found is None else found

    def image(self, kernel: str | None = None) -> Image:
        """Return the GPU image of a kernel: PTX, machine code, registers and memory use.

        Raises
        ------
        UnknownFunctionError
            If no kernel has this name, or the target does not use images.
        """
        images = self.artifact.images
        name = next(iter(images), "") if kernel is None and len(images) == 1 else kernel or ""
        if name not in images:
            raise UnknownFunctionError(
                f"no image of kernel {name!r} for {self.target}"
                if name
                else f"no kernel name was passed, and {self.target} has {len(images)} GPU images",
                hint=f"kernels with images are {', '.join(map(repr, sorted(images)))}"
                if images
                else "only target 'cuda' has images",
            )
        return Image.from_bytes(images[name])

    def sass(self, kernel: str | None = None) -> str:
        """Return the GPU machine code of a kernel as text; requires ``nvidia-cuda-nvdisasm``.

        Raises
        ------
        AssemblerMissingError
            If a package of NVIDIA's tools was missing during compilation, or is missing now.
        """
        return disassemble(self.image(kernel).machine_code())

    def _text(self, kernel: str | None) -> str:
        name = kernel or ""
        if name not in self.artifact.texts:
            known = ", ".join(repr(n) for n in sorted(self.artifact.texts) if n)
            raise UnknownFunctionError(
                f"no kernel {name!r}", hint=f"kernels are {known}" if known else "no kernels"
            )
        return self.artifact.text(name)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return self.artifact.kernels

    def llvm(self, kernel: str | None = None, *, optimized: bool = False) -> str:
        """Return the LLVM IR text of a kernel, or of the host flow.

        Parameters
        ----------
        kernel : str, optional
            Name of the kernel; by default the host flow.
        optimized : bool
            Return the text after LLVM's optimization passes.
        """
        text = self._text(kernel)
        return self._convert(kernel, text, "optimized") if optimized else text

    def assembly(self, kernel: str | None = None) -> str:
        """Return the machine code of a kernel, or of the host flow, as assembly text."""
        return self._convert(kernel, self._text(kernel), "assembly")

    def _convert(self, kernel: str | None, text: str, output: str) -> str:
        name = kernel or "host flow"
        match output:
            case "optimized" | "assembly":
                machine = self.target if kernel else host_target(self.target)
                return default_pool().run(CompileJob(name, text, machine, output)).decode()
            case _:
                raise CompileError(f"unknown artifact kind {output!r}")

    def trim(self) -> None:
        """Free the arenas that no call is using."""
        for function in self._functions.values():
            function.trim()


def _load_compact(constant: Constant) -> Array:
    """Load a constant; copy it if it is not compact or not aligned to its elements."""
    array = np.asarray(constant.load())
    expected = constant.dtype.numpy
    if array.dtype != expected or tuple(array.shape) != tuple(constant.shape):
        raise MissingConstantError(
            f"constant {constant.source or '?'}: expected {expected}{tuple(constant.shape)} "
            f"as declared, got {array.dtype}{array.shape}"
        )
    fits = array.flags.c_contiguous and array.ctypes.data % max(constant.dtype.bytes, 1) == 0
    return array if fits else np.array(array, order="C")
