"""Executables: native functions loaded from an artifact, and the constants they use."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from numpy import ndarray

from ...calls import checked_calls
from ...errors import UnpicklableError
from ...ir.module import (
    Array,
    Constant,
    MissingConstantError,
    UnknownFunctionError,
    unknown_function,
)
from ...locks import renew_in_children
from ...nearest import listed, missing_attribute
from ...target.target import Target
from ..artifact import Artifact
from ..build.build_objects import host_job, host_target
from ..build.native_library import Library
from ..build.rtlib_object import rtlib_object_code
from ..build.worker_pool import CompileJob, default_pool
from ..entry_names import CALL, INTO, public_name
from ..errors import ArgumentNameError
from ..libraries import library_address
from ..manifest import FunctionSpec
from ..nvidia import Image, disassemble
from .arguments import signature_of
from .attribute_hints import attribute_hint
from .device import Device, RemoteDevice, device_of
from .device_tensor import DeviceTensor
from .explanation import Explanation, explanation
from .function import ExternalAddresses, NativeFunction
from .memory_plan import MemoryPlan, plan_of_call
from .profile import Profile, check_repeats, make_profile
from .remote import RemoteFunction
from .state import ExecutableState, StateSource, new_state
from .summary import summary
from .table import ProviderError, RuntimeTable, default_table
from .tensors import address_of, load_compact

if TYPE_CHECKING:
    from ...ir.importers.torch_call import TorchCall


@checked_calls
class Executable:
    """Compiled functions, which are safe to call from several threads at once.

    ``exe(x)`` calls ``main``, or the only function; ``exe["name"]`` returns another function.
    Arguments are NumPy arrays or tensors that support DLPack, passed by position or by the names of
    the parameters; results are NumPy arrays; large ones own native memory. Several results are a
    tuple, whose fields have the names of the results: ``exe(tokens=x).logits``.
    ``help(exe["name"])`` and ``inspect.signature(exe["name"])`` show parameters and results.

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
    call : TorchCall, optional
        How to call ``main`` as the PyTorch module that it was imported from by `from_torch`: calls
        of the executable then take and return nested PyTorch tensors. ``exe["main"]`` takes the
        tensors in order and returns arrays.

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
    >>> exe(x=np.array([6], np.float32))
    array([3.], dtype=float32)
    >>> print(exe.signature("halve"))
    (x: 'Tensor((n,), f32)') -> 'y : Tensor((n,), f32)'
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
        call: TorchCall | None = None,
    ) -> None:
        """Load the machine code."""
        self.artifact = artifact
        self.compiled = compiled
        self._constants = {**constants, **artifact.constants}
        self._arrays: dict[str, Array | DeviceTensor] = {}
        self._lock = threading.RLock()
        renew_in_children(self)
        self._table = table
        self._device: Device | None = None
        self._functions: dict[str, NativeFunction] = {}
        self._preparing: dict[str, NativeFunction] = {}
        self._main: NativeFunction | None = None
        self._call = call
        self._state: ExecutableState | None = None
        if table is not None and not isinstance(cast("object", table), RuntimeTable):
            raise ProviderError(
                f"expected a RuntimeTable, got {type(table).__name__}",
                where="argument 'table'",
                hint="omit the argument 'table', or pass a RuntimeTable",
            )
        if table is not None and artifact.target.is_gpu:
            raise ProviderError(
                f"{artifact.target} uses the runtime table of its device, got another table",
                hint="omit the argument 'table'",
            )
        if "main" in self.names or len(self.names) == 1:
            # For inspect.signature and completion.
            self.__signature__ = signature_of(self.spec()) if call is None else call.signature()
        # Programs for GPUs can be compiled on machines without one, so they are loaded later.
        if artifact.target.kind in ("cpu", "simt"):
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
                function.owner = self
                function.provide_state = self._default_state
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

    def __str__(self) -> str:
        """Return the functions, the kernels with their versions, and sizes, as tables."""
        return "\n\n".join(str(table) for table in summary(self.artifact, self._constants))

    def _repr_html_(self) -> str:
        """Return the tables as static HTML."""
        return "".join(table.to_html() for table in summary(self.artifact, self._constants))

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Call ``main``, or the only function; arguments as for :class:`NativeFunction`."""
        function = self._main or self._only()
        direct = function.direct
        if direct is not None and not named and self._call is None:
            found = direct(*arguments)
            if type(found) is ndarray:
                return found
            if found is not NotImplemented:
                return function.results_of(found)
            return function.invoke(arguments)
        if self._call is not None:
            state = {"state": named.pop("state")} if function.states and "state" in named else {}
            return self._call.result(function(*self._call.arguments(arguments, named), **state))
        if named or function.states:
            return function(*arguments, **named)
        return function.invoke(arguments)

    @property
    def state(self) -> ExecutableState:
        """The default state; its shapes must not depend on symbols."""
        return self._default_state()

    def _default_state(self) -> ExecutableState:
        if self._state is not None:
            return self._state
        with self._lock:
            if self._state is None:
                self._state = self.new_state()
            return self._state

    def new_state(self, /, **values: Any) -> ExecutableState:
        """Create a state: the values of the state parameters of all functions, by name.

        Parameters
        ----------
        **values
            Values of the symbols of the shapes, and initial arrays of state parameters, which are
            copied. The others have the initial values of the program, by default zero.

        Returns
        -------
        ExecutableState
            An independent state, for calls such as ``exe(x, state=s)``.

        Raises
        ------
        StateError
            If no function has state parameters, a name is unknown, the value of a symbol is
            missing, or an array does not fit.
        """
        self._load()
        device = self._device if isinstance(self._device, RemoteDevice) else None
        specs = self.artifact.functions
        return new_state(StateSource(self, specs, self.initial_value, device), values)

    def initial_value(self, key: str) -> Array:
        """Return the constant with the initial value of a state."""
        found = self._constants.get(key)
        if found is None:
            raise MissingConstantError(
                f"no constant {key!r}", hint="add it to the constants of the module"
            )
        return load_compact(found)

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
        if not isinstance(cast("object", name), str):
            raise unknown_function(name, self.names)
        self._load()
        known = (self._functions.get(name + ending) for ending in ("", CALL, INTO))
        found = next((f for f in known if f is not None), None)
        if found is None:
            raise unknown_function(name, self.names)
        return found

    def __reduce__(self) -> NoReturn:
        """Report that an executable cannot be pickled, and the alternatives."""
        raise UnpicklableError(
            "an Executable cannot be pickled or copied: its machine code belongs to this process",
            where="Executable",
            hint="pickle the module and compile it again, which uses the cache, or use export",
        )

    def __contains__(self, name: object) -> bool:
        """Return whether a function has this name."""
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the functions, as ``names`` lists them."""
        return iter(self.names)

    if not TYPE_CHECKING:  # a type checker reports unknown attributes itself

        def __getattr__(self, name: str) -> NoReturn:
            """Report an unknown attribute, with a similar name."""
            known = self.names if "artifact" in self.__dict__ and not name.startswith("_") else ()
            hint = attribute_hint(name, known)
            missing_attribute(self, name, ("artifact", "compiled"), hint=hint)

    def signature(self, function: str = "main") -> inspect.Signature:
        """Return the parameters and results of a function with their types, as text.

        Raises
        ------
        UnknownFunctionError
            If no function has this name.
        ArgumentNameError
            If a name of a parameter is not valid in Python, so that it has no signature.
        """
        spec = self.spec(function)
        found = signature_of(spec)
        if found is None:
            names = ", ".join(repr(p.name) for p in spec.params)
            raise ArgumentNameError(
                f"no signature in Python: the parameters are {names}",
                where=f"function {function!r}",
                hint="pass arguments by position, or by name with **{...}",
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
            tensor = self._arrays[key] = self._device.upload(value)
            return tensor.address, tensor
        return address_of(value)

    def _constant(self, key: str) -> Array | DeviceTensor:
        """Return a constant: a result of ``prepare``, or a constant of the module."""
        if key not in self._arrays and key in self._preparing:
            self._run(self._preparing[key])
        if key not in self._arrays:
            if key not in self._constants:
                raise MissingConstantError(
                    f"no constant {key!r}",
                    hint="add it to the constants of the module, or return it from prepare()",
                )
            self._arrays[key] = load_compact(self._constants[key])
        return self._arrays[key]

    def _run(self, prepare: NativeFunction) -> None:
        """Run weight transforms and store their results as constants."""
        value: object = prepare.resident()
        names = [r.name for r in prepare.spec.results]
        results = cast("tuple[Array, ...]", value if isinstance(value, tuple) else (value,))
        self._arrays.update(zip(names, results, strict=True))

    def profile(
        self, /, *arguments: Any, function: str = "main", repeats: int = 5, **named: Any
    ) -> Profile:
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
        **named
            Arguments by the names of the parameters, and ``state``.

        Returns
        -------
        Profile
            Median times in µs; ``print`` shows a table.

        Raises
        ------
        ProfileOptionsError
            If ``repeats`` is not an integer of at least 1.
        """
        check_repeats(repeats)
        chosen = self._function(function)

        def measured(given: Sequence[Any], state: ExecutableState | None) -> Profile:
            chosen.timed(given, state)
            runs = [chosen.timed(given, state) for _ in range(repeats)]
            return make_profile(chosen.spec, runs)

        return chosen.with_state(arguments, named, measured)

    def memory(
        self, shapes: Mapping[str, int] | None = None, *, function: str = "main"
    ) -> MemoryPlan:
        """Plan the memory of temporary tensors for values of the symbols.

        Parameters
        ----------
        shapes : Mapping of str to int, optional
            The value of each symbol of the function, by name.
        function : str
            Name of the function.

        Returns
        -------
        MemoryPlan
            The size of the arena, the peak, the offset of each storage in bytes, and the plan of
            the next call, which may have been made for larger sizes; ``print`` shows a table.

        Raises
        ------
        UnboundSymbolError
            If a symbol has no value.
        SymbolValueError
            If a value is not a size, or a name is not a symbol of the function.
        """
        return plan_of_call(self._functions, self.spec(function), {} if shapes is None else shapes)

    def explain(
        self, kernel: str | None = None, shapes: Mapping[str, int] | None = None
    ) -> Explanation:
        """Explain the kernels: their operations, schedules, versions and checks.

        Parameters
        ----------
        kernel : str, optional
            Name of the kernel to explain in detail; by default a table of all kernels.
        shapes : Mapping of str to int, optional
            The value of each symbol, for the counts of operations and bytes, and for the memory
            of temporary tensors; by default the counts are terms.

        Returns
        -------
        Explanation
            The facts that the compiler recorded; ``print`` shows tables.

        Raises
        ------
        UnknownFunctionError
            If no kernel has this name.
        SymbolValueError, UnboundSymbolError
            If ``shapes`` has another symbol or an illegal size, or lacks a symbol.
        """
        known = {k.kernel for k in self.artifact.facts}
        if kernel is not None and cast("object", kernel) not in list(known):
            usage = "explain(shapes={...}) has the sizes as its second parameter"
            raise UnknownFunctionError(
                f"no kernel {kernel!r}; kernels are {listed(str(kernel), sorted(known))}",
                hint=usage if isinstance(kernel, Mapping) else "",
            )
        return explanation(self.artifact, kernel, shapes, self._functions)

    def constants(self, *, prepared: bool = False) -> dict[str, Array]:
        """Load the constants that functions use: those of the module, or results of ``prepare``."""
        made = {r.name for f in self.artifact.functions if f.prepares for r in f.results}
        if prepared:
            self._load()
            return {k: cast("Array", self._constant(k)) for k in sorted(made)}
        used = sorted({k for f in self.artifact.functions for k in f.constants} - made)
        return {k: load_compact(self._constants[k]) for k in used if k in self._constants}

    def _function(self, name: str) -> NativeFunction:
        return self._main or self._only() if name == "main" else self[name]

    def spec(self, function: str = "main") -> FunctionSpec:
        """Return the specification of a function: parameters, results, launches, storages."""
        if not isinstance(cast("object", function), str):
            raise unknown_function(function, self.names)
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
        images: Mapping[str, bytes] = self.artifact.images if self.target.is_cuda else {}
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
            if name in self.artifact.programs:
                raise UnknownFunctionError(
                    f"no LLVM IR of kernel {name!r}",
                    hint="the emulator runs thread IR: tilewright.lower(program) returns it",
                )
            raise UnknownFunctionError(
                f"no kernel {name!r}", hint=f"kernels are {known}" if known else "no kernels"
            )
        return self.artifact.text(name)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return self.artifact.kernels

    def llvm(self, kernel: str | None = None, *, optimized: bool = False) -> str:
        """Return the LLVM IR text of a kernel, or of the host flow; for WebGPU, a kernel's WGSL.

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

    def _convert(self, kernel: str | None, text: str, to: Literal["optimized", "assembly"]) -> str:
        if kernel and self.target.kind == "webgpu":
            hint = f"exe.llvm({kernel!r}) returns the text of its shader"
            raise UnknownFunctionError(f"the driver compiles kernel {kernel!r}", hint=hint)
        own = kernel and CompileJob(kernel, text, self.target, to)
        return default_pool().run(own or host_job(text, self.target, to)).decode()

    def trim(self) -> None:
        """Free the arenas that no call is using."""
        for function in self._functions.values():
            function.trim()
