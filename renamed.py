"""Former names of the public API, and errors that state the current ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from types import MappingProxyType, ModuleType
from typing import NoReturn

from .errors import TilewrightError
from .nearest import did_you_mean, missing_attribute

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "Agreement": "Verdict",
        "Candidate": "Suggestion",
        "Conditions": "MeasureOptions",
        "ConditionsError": "MeasureOptionsError",
        "Gone": "Removed",
        "KernelArtifact": "LoweredKernel",
        "LostHandleError": "StaleHandleError",
        "Ref": "Handle",
        "finished": "with_default_schedule",
    }
)
"""Classes and functions: former name to current name."""

STEPS: Mapping[str, str] = MappingProxyType({"specialise": "specialize"})
"""Primitives and queries: former name to current name. Saved traces contain the former ones."""


MODULES: Mapping[str, str] = MappingProxyType(
    {
        "codegen.cpu": "target.host",
        "codegen.lower.flow": "codegen.lower.host",
        "codegen.lower.gpu": "codegen.lower.passes",
        "codegen.lower.kernel": "codegen.lower.to_thread",
        "codegen.lower.loops": "codegen.lower.passes",
        "codegen.processors": "target.cpus",
        "codegen.runtime.cache": "codegen.build.object_cache",
        "codegen.runtime.errors": "codegen.errors",
        "codegen.runtime.isolated": "codegen.measure",
        "codegen.runtime.machine": "target.host",
        "ir.errors": "errors",
        "ir.gpu": "target.gpus",
        "ir.graph.memory": "ir.graph.nodes",
        "ir.host.support": "codegen.rtlib",
        "ir.script.printing": "ir.script.printer",
        "ir.script.reading": "ir.script.parser",
        "ir.script.words": "ir.words",
        "ir.target": "target.target",
        "ir.thread.table": "ir.thread.runtime_table",
        "schedules.common": "schedules.checks",
        "schedules.primitive": "schedules.apply",
        "schedules.refs": "schedules.handles",
        "schedules.rules.gpu.default": "schedules.rules.kernel",
        "schedules.rules.gpu.fallback": "schedules.rules.gpu.loops",
        "schedules.rules.machine": "schedules.machine",
        "schedules.rules.patterns": "schedules.patterns",
    }
)
"""Modules of the package: former name to current name."""


class RenamedImportError(TilewrightError, ImportError):
    """The import of a module, class, or function by its former name."""

    title = "Renamed import"


class RenamedStepError(TilewrightError, AttributeError):
    """The call of a primitive or query by its former name."""

    title = "Renamed step"


def missing_name(
    module: str, name: str, known: Iterable[str] = (), equivalent: str | None = None
) -> AttributeError:
    """Return the error for a name that a module lacks; the message contains a similar one.

    ``equivalent`` is the name of the same function here, for the name of another package.

    Examples
    --------
    >>> missing_name("tilewright", "Schedul", ["Schedule", "Target"])
    AttributeError("module 'tilewright' has no attribute 'Schedul'; did you mean 'Schedule'?")
    """
    question = "" if name.startswith("_") else did_you_mean(equivalent or name, known)
    message = f"module {module!r} has no attribute {name!r}"
    return AttributeError(f"{message}; {question}" if question else message)


def module_getattr(module: str) -> Callable[[str], NoReturn]:
    """Return a ``__getattr__`` for a module that reports former names.

    Parameters
    ----------
    module : str
        The name of the module that exports the current names.

    Examples
    --------
    >>> module_getattr("tilewright.schedules")("LostHandleError")
    Traceback (most recent call last):
        ...
    tilewright.renamed.RenamedImportError: 'LostHandleError' was renamed to 'StaleHandleError'
      at tilewright.schedules
    """

    def missing(name: str) -> NoReturn:
        new = NAMES.get(name)
        if new is not None:
            raise RenamedImportError(f"{name!r} was renamed to {new!r}", where=module)
        raise missing_name(module, name, getattr(sys.modules.get(module), "__all__", ()))

    return missing


def missing_method(
    schedule: object, name: str, known: Iterable[str] = (), *, hint: str = ""
) -> NoReturn:
    """Raise the error for an attribute that a schedule does not have.

    Parameters
    ----------
    schedule : object
        The schedule.
    name : str
        The attribute.
    known : iterable of str
        The names of the steps.
    hint : str
        The equivalent of a name of another compiler.

    Raises
    ------
    RenamedStepError
        If the attribute is the former name of a step.
    AttributeError
        Otherwise; the message contains the most similar name.
    """
    new = STEPS.get(name)
    if new is not None:
        raise RenamedStepError(f"step {name!r} was renamed to {new!r}", hint=f"call {new}(...)")
    missing_attribute(schedule, name, known, hint=hint)


class FormerModules(MetaPathFinder):
    """An import hook that reports former names of modules.

    It is last in ``sys.meta_path``, so it only sees modules that do not exist.

    Parameters
    ----------
    package : str
        The name under which the package is imported.
    """

    def __init__(self, package: str) -> None:
        """Store the prefix of the names of the package."""
        self._prefix = f"{package}."

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise an error if a module was renamed.

        Raises
        ------
        RenamedImportError
            If ``fullname`` is the former name of a module.
        """
        del path, target
        new = MODULES.get(fullname.removeprefix(self._prefix))
        if new is not None and fullname.startswith(self._prefix):
            raise RenamedImportError(f"module {fullname!r} was renamed to {self._prefix + new!r}")


def report_former_modules(package: str) -> None:
    """Install the import hook for a package, once."""
    if not any(isinstance(finder, FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(FormerModules(package))
