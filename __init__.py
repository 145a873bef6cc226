"""Tilewright: a tensor compiler with a notebook interface.

Public names load on first access, so ``import tilewright`` is fast.

Example
-------
>>> import tilewright as tw
>>> "compile" in dir(tw)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .renamed import missing_name, report_former_modules

if TYPE_CHECKING:
    from .codegen import compile
    from .codegen.combine import combine
    from .codegen.export import export
    from .codegen.lowered import lower
    from .codegen.measure.measure import measure
    from .errors import TilewrightError
    from .ir import script
    from .ir.graph.libraries import library_function
    from .ir.graph.operators import custom_operator
    from .ir.importers import from_exported_program, from_onnx, from_torch
    from .ir.packing import PackedArray
    from .ir.script import parse
    from .schedules import Schedule, composite
    from .target.target import Target
    from .workbench import Workbench

    __version__: str

report_former_modules(__name__)

__all__ = [
    "PackedArray",
    "Schedule",
    "Target",
    "TilewrightError",
    "Workbench",
    "__version__",
    "combine",
    "compile",
    "composite",
    "custom_operator",
    "export",
    "from_exported_program",
    "from_onnx",
    "from_torch",
    "library_function",
    "lower",
    "measure",
    "parse",
    "script",
]

_HOME = {
    "PackedArray": ".ir.packing",
    "Schedule": ".schedules",
    "Target": ".target.target",
    "TilewrightError": ".errors",
    "Workbench": ".workbench",
    "combine": ".codegen.combine",
    "compile": ".codegen",
    "composite": ".schedules",
    "custom_operator": ".ir.graph.operators",
    "export": ".codegen.export",
    "from_exported_program": ".ir.importers",
    "from_onnx": ".ir.importers",
    "from_torch": ".ir.importers",
    "library_function": ".ir.graph.libraries",
    "lower": ".codegen.lowered",
    "measure": ".codegen.measure.measure",
    "parse": ".ir.script",
}

# Functions of other packages with the same purpose, for errors.
_EQUIVALENTS = {
    "Executor": "compile",
    "IRModule": "parse",
    "benchmark": "measure",
    "build": "compile",
    "from_pytorch": "from_torch",
    "import_onnx": "from_onnx",
    "jit": "compile",
    "load_onnx": "from_onnx",
}

_MODULES = {"script": ".ir.script"}


def __getattr__(name: str) -> Any:
    """Load a public name from its module, once."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("tilewright")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name], __name__), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name], __name__)
    else:
        raise missing_name(__name__, name, __all__, _EQUIVALENTS.get(name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
