"""Public symbols that the exported library uses itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError
from tilewright.codegen.export.public_symbols import MODULES

TEXT = """
@prim_func
def {name}(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    for i in range(4):
        y[i] = x[i]
"""


@pytest.mark.parametrize(
    ("model", "function", "kind"),
    [("put", "shape", "shared"), ("check", "weights", "static"), ("equal", "text", "wasm")],
)
def test_a_function_with_the_symbol_of_an_internal_one(
    tmp_path: Path, model: str, function: str, kind: str
) -> None:
    symbol = f"{model}_{function}"
    with pytest.raises(ExportError, match=rf"symbol '{symbol}', which the exported library uses"):
        tw.export(tw.parse(TEXT.format(name=function)), tmp_path / "m", kind=kind, name=model)
    assert not list(tmp_path.iterdir())


def test_a_webassembly_function_with_the_symbol_of_a_kernel(tmp_path: Path) -> None:
    """Objects of WebAssembly keep the names of their symbols."""
    program = tw.parse(TEXT.format(name="f") + TEXT.format(name="k_f"))
    with pytest.raises(ExportError, match="symbol 'k_f', which the exported library uses"):
        tw.export(program, tmp_path / "m", kind="wasm", name="k")


@pytest.mark.parametrize("kind", MODULES)
def test_modules_have_no_functions_for_outputs(tmp_path: Path, kind: str) -> None:
    program = tw.parse(TEXT.format(name="f"))
    module = tw.export(program, tmp_path / "m", kind=kind, name="k").directory / "k.wasm"
    symbols = module.read_bytes()
    assert b"k_f" in symbols
    assert b"k_f_into" not in symbols
