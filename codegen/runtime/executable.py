"""An executable: native functions loaded from an artefact, with the constants they refer to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ...ir.module import Array, Constant, MissingConstantError, UnknownFunctionError
from ...ir.target import Target
from ..artifact import Artifact
from ..libraries import library_address
from ..lower.wrap import CALL, INTO, public_name
from ..manifest import FunctionSpec
from ..nvidia import Image, disassemble
from .build import host_target
from .device import Device, RemoteDevice, device_of
from .device_tensor import DeviceTensor
from .errors import CompileError
from .function import NativeFunction, Outside
from .loader import Library
from .profile import MemoryPlan, Profile, make_profile, memory_plan
from .remote import RemoteFunction
from .support import support_object
from .table import ProviderError, RuntimeTable, default_table
from .workers import Job, default_pool


class Executable:
    """Compiled functions, ready to be called from any number of threads.

    ``exe(x)`` calls ``main``; ``exe["name"]`` gives another function. Arguments are NumPy arrays
    or anything that speaks DLPack; results are NumPy arrays that own native memory.

    Parameters
    ----------
    artifact : Artifact
        What :func:`tilewright.compile` made.
    constants : Mapping of str to Constant
        The module's constants; loaded when a function that uses them is first called.
    table : RuntimeTable, optional
        Where native code gets memory and threads; the process's own if not given.
    compiled : int
        How many objects LLVM had to make for it; kept as an attribute.

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
        """Load the machine code; nothing runs yet."""
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
                f"{artifact.target} brings the runtime table of its device",
                hint="leave the table out",
            )
        if artifact.target.kind != "cuda":  # a program for a GPU is made on machines without one
            self._load()

    def _load(self) -> None:
        """Open the device, if there is one, and bind the functions; once."""
        with self._lock:
            if self._functions:
                return
            self._device = device_of(self.artifact.target)
            made = self._bound(self._device)
            for name, function in made.items():
                function.in_place = made.get(public_name(name) + INTO)
            self._preparing = {
                result.name: function
                for function in made.values()
                if function.spec.prepares
                for result in function.spec.results
            }
            self._main = made.get("main")
            self._functions = made

    def _bound(self, device: Device | None) -> dict[str, NativeFunction]:
        artifact, host = self.artifact, host_target(self.artifact.target)
        objects = [artifact.objects[name] for name in sorted(artifact.objects)]
        library = Library([support_object(host), *objects], host)
        handles: Mapping[str, int] = {} if device is None else device.load(artifact)
        chosen = self._table or default_table(artifact.threads)
        kind = RemoteFunction if isinstance(device, RemoteDevice) else NativeFunction
        return {
            spec.name: kind(
                spec, library, chosen if device is None else device.table, self._fetch,
                Outside(
                    tuple(library_address(name) for name in spec.libraries),
                    tuple(handles[name] for name in spec.kernels),
                    device,
                ),
            )
            for spec in artifact.functions
        }  # fmt: skip

    def __repr__(self) -> str:
        """In a line: what can be called, the target, and how many kernels there are."""
        functions = ", ".join(self.spec(name).signature(name) for name in self.names)
        count = len(self.kernels)
        return (
            f"<Executable for {self.target}: {functions}; "
            f"{count} kernel{'' if count == 1 else 's'}>"
        )

    # ------------------------------------------------------------ calling

    def __call__(self, *arguments: Any) -> Any:
        """Call ``main``, or the only function there is."""
        function = self._main or self._only()
        return function(*arguments)

    def _only(self) -> NativeFunction:
        self._load()
        if self._main is not None:
            return self._main
        names = self.names
        if len(names) != 1:
            raise UnknownFunctionError(
                "no function 'main' to call", hint=f"functions are {', '.join(names)}"
            )
        self._main = self[names[0]]
        return self._main

    def __getitem__(self, name: str) -> NativeFunction:
        """Give a function by name.

        Raises
        ------
        UnknownFunctionError
            If there is none; the message lists those there are.
        """
        self._load()
        known = (self._functions.get(name + ending) for ending in ("", CALL, INTO))
        found = next((f for f in known if f is not None), None)
        if found is None:
            raise UnknownFunctionError(
                f"no function {name!r}", hint=f"functions are {', '.join(self.names)}"
            )
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that can be called."""
        shown = (f.name for f in self.artifact.functions if not f.prepares)
        return tuple(dict.fromkeys(public_name(n) for n in shown))

    @property
    def cached(self) -> bool:
        """Whether all machine code came from the cache."""
        return self.compiled == 0

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self.artifact.target

    @property
    def device(self) -> Device | None:
        """The device that kernels run on; None where they run on the processor itself."""
        self._load()
        return self._device

    # ------------------------------------------------------------ constants

    def _fetch(self, keys: Sequence[str]) -> list[tuple[int, object]]:
        with self._lock:
            return [self._placed(key) for key in keys]

    def _placed(self, key: str) -> tuple[int, object]:
        """Give the address of a constant where kernels read it, and what holds it."""
        held = self._constant(key)
        if isinstance(held, DeviceTensor):
            return held.address, held
        if isinstance(self._device, RemoteDevice):
            made = self._device.upload(held)
            self._arrays[key] = made
            return made.address, made
        return held.ctypes.data, held

    def _constant(self, key: str) -> Array | DeviceTensor:
        """Give a constant: what ``prepare`` makes, where it does, else the module's."""
        if key not in self._arrays and key in self._preparing:
            self._run(self._preparing.pop(key))
        if key not in self._arrays:
            if key not in self._constants:
                raise MissingConstantError(
                    f"no constant {key!r}", hint="give it to the module, or let prepare() make it"
                )
            self._arrays[key] = _usable(self._constants[key])
        return self._arrays[key]

    def _run(self, prepare: NativeFunction) -> None:
        """Run weight transforms, once; their results are constants from then on."""
        made: object = prepare.resident()
        names = [r.name for r in prepare.spec.results]
        results = cast("tuple[Array, ...]", made if isinstance(made, tuple) else (made,))
        self._arrays.update(zip(names, results, strict=True))

    # ------------------------------------------------------------ questions

    def profile(self, *arguments: Any, function: str = "main", repeats: int = 5) -> Profile:
        """Call with a clock at every launch.

        Parameters
        ----------
        *arguments
            As in a call; parameters written in place are written ``repeats + 1`` times.
        function : str
            Which function.
        repeats : int
            Calls, after one that is not counted.

        Returns
        -------
        Profile
            Medians in µs.
        """
        chosen = self._function(function)
        chosen.timed(arguments)
        return make_profile(chosen.spec, [chosen.timed(arguments) for _ in range(repeats)])

    def memory(
        self, shapes: Mapping[str, int] | None = None, *, function: str = "main"
    ) -> MemoryPlan:
        """Plan the arena for values of the symbols: bytes, peak, and the place of each storage."""
        return memory_plan(self.spec(function), shapes or {})

    def constants(self) -> dict[str, Array]:
        """Load the constants that the functions refer to and nothing prepares, by name."""
        prepared = {r.name for f in self.artifact.functions if f.prepares for r in f.results}
        used = {k for f in self.artifact.functions for k in f.constants} - prepared
        return {k: _usable(self._constants[k]) for k in sorted(used) if k in self._constants}

    def _function(self, name: str) -> NativeFunction:
        return self._main or self._only() if name == "main" else self[name]

    def spec(self, function: str = "main") -> FunctionSpec:
        """Give the description of a function: parameters, results, launches, storages."""
        specs = {f.name: f for f in self.artifact.functions}
        main = "main" if "main" in specs or len(self.names) != 1 else self.names[0]
        name = main if function == "main" else function
        found = next((specs[name + e] for e in ("", CALL, INTO) if name + e in specs), None)
        return self[function].spec if found is None else found

    def image(self, kernel: str | None = None) -> Image:
        """Give what a kernel is for a GPU: PTX, machine code, registers and memory it takes.

        Raises
        ------
        UnknownFunctionError
            If there is no such kernel, or the program is for no GPU that loads one.
        """
        images = self.artifact.images
        name = next(iter(images), "") if kernel is None and len(images) == 1 else kernel or ""
        if name not in images:
            raise UnknownFunctionError(
                f"no image of a kernel {name!r} for {self.target}",
                hint=f"there are {', '.join(sorted(images)) or 'none: only CUDA has images'}",
            )
        return Image.from_bytes(images[name])

    def sass(self, kernel: str | None = None) -> str:
        """Give a kernel's machine code for a GPU as text; needs ``nvidia-cuda-nvdisasm``.

        Raises
        ------
        AssemblerMissingError
            If a package of NVIDIA's tools was not there when compiling, or is not now.
        """
        return disassemble(self.image(kernel).machine_code())

    def _text(self, kernel: str | None) -> str:
        name = kernel or ""
        if name not in self.artifact.texts:
            known = ", ".join(sorted(n for n in self.artifact.texts if n))
            raise UnknownFunctionError(f"no kernel {name!r}", hint=f"kernels are {known}")
        return self.artifact.text(name)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels, by name."""
        return self.artifact.kernels

    def llvm(self, kernel: str | None = None, *, optimized: bool = False) -> str:
        """Give the LLVM text of a kernel, or of the host flow.

        ``optimized`` shows it after LLVM's own passes.
        """
        text = self._text(kernel)
        return self._ask(kernel, text, "optimized") if optimized else text

    def assembly(self, kernel: str | None = None) -> str:
        """Give the machine code of a kernel, or of the host flow, as assembly text."""
        return self._ask(kernel, self._text(kernel), "assembly")

    def _ask(self, kernel: str | None, text: str, want: str) -> str:
        name = kernel or "host flow"
        match want:
            case "optimized" | "assembly":
                machine = self.target if kernel else host_target(self.target)
                return default_pool().run(Job(name, text, machine, want)).decode()
            case _:
                raise CompileError(f"nothing makes {want!r}")

    def trim(self) -> None:
        """Free the arenas that no call is using."""
        for function in self._functions.values():
            function.trim()


def _usable(constant: Constant) -> Array:
    """Load a constant; copy it only where it is not compact or not aligned to its elements."""
    array = np.asarray(constant.load())
    wanted = constant.dtype.numpy
    if array.dtype != wanted or tuple(array.shape) != tuple(constant.shape):
        raise MissingConstantError(
            f"constant {constant.source or '?'} has {array.dtype}{array.shape}, "
            f"declared {wanted}{tuple(constant.shape)}"
        )
    fits = array.flags.c_contiguous and array.ctypes.data % max(constant.dtype.bytes, 1) == 0
    return array if fits else np.array(array, order="C")
