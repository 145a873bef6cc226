"""Handwritten stubs declare only names and parameters of the real packages."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from tilewright.codegen.runtime.cuda.driver import lazily_bound

from tests.codegen.runtime.cuda.pretended import loaded
from tests.conftest import ROOT

STUBS = sorted((ROOT / "typings").rglob("*.pyi"))
Definition = ast.FunctionDef | ast.ClassDef


def module_name(stub: Path) -> str:
    parts = stub.relative_to(ROOT / "typings").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def definitions(body: list[ast.stmt], prefix: str = "") -> list[tuple[str, Definition]]:
    """Return functions, classes, and methods of a stub with their dotted names.

    A private class replaces a base class that the package does not export.
    """
    found: list[tuple[str, Definition]] = []
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name.startswith("_"):
                pass
            case ast.FunctionDef(name=name):
                found.append((prefix + name, node))
            case ast.ClassDef(name=name):
                found += [(prefix + name, node), *definitions(node.body, f"{prefix}{name}.")]
            case _:
                pass
    return found


def resolve(module: object, dotted: str) -> object:
    for part in dotted.split("."):
        module = inspect.getattr_static(module, part, None) or getattr(module, part)
    return module


def imported(stub: Path) -> object:
    name = module_name(stub)
    if name.startswith("pycuda"):
        loaded()  # PyCUDA loads the driver; this test does not need a GPU
        with lazily_bound():
            return importlib.import_module(name)
    return importlib.import_module(name)


@pytest.mark.parametrize("stub", STUBS, ids=module_name)
def test_stub_names_exist(stub: Path) -> None:
    module = imported(stub)
    missing = []
    for dotted, _ in definitions(ast.parse(stub.read_text()).body):
        try:
            resolve(module, dotted)
        except AttributeError:
            missing.append(dotted)
    assert missing == []


@pytest.mark.parametrize("stub", STUBS, ids=module_name)
def test_stub_parameters_exist(stub: Path) -> None:
    module = imported(stub)
    wrong = []
    for dotted, node in definitions(ast.parse(stub.read_text()).body):
        real = resolve(module, dotted)
        real = getattr(real, "__func__", real)
        if isinstance(node, ast.ClassDef) or not inspect.isfunction(real):
            continue
        signature = inspect.signature(real).parameters
        if any(p.kind is p.VAR_KEYWORD for p in signature.values()):
            continue
        named = {a.arg for a in [*node.args.args, *node.args.kwonlyargs]}
        wrong += [f"{dotted}({name})" for name in named - set(signature)]
    assert wrong == []
