"""Exports: the files, and rejected exports, which leave no files."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError, link
from tilewright.codegen.export.errors import ExportDirectoryError, LinkerMissingError
from tilewright.codegen.export.names import RESERVED
from tilewright.codegen.export.states import RESERVED as STATE_NAMES
from tilewright.codegen.program import NotAProgramError
from tilewright.target.target import UnknownTargetError

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def test_every_file_is_in_the_manifest(exported):
    manifest = json.loads((exported / "small.json").read_text())
    names = {p.name for p in exported.iterdir()} - {"small.json"}
    assert set(manifest["files"]) == names
    for name, facts in manifest["files"].items():
        data = (exported / name).read_bytes()
        assert facts == {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def test_the_manifest_describes_the_functions(exported):
    manifest = json.loads((exported / "small.json").read_text())
    main, _, accumulate = manifest["functions"]
    assert main["symbol"] == "small_main"
    assert [p["annotation"] for p in main["params"]] == [
        "Tensor((n, 24), f32)", "Tensor((n, 40), f32)",
    ]  # fmt: skip
    assert [r["name"] for r in main["results"]] == ["c", "d"]
    assert [(r["annotation"], r["shape"]) for r in main["results"]] == [
        ("Tensor((n, 40), f32)", ["n", "40"]), ("Tensor((n,), f32)", ["n"]),
    ]  # fmt: skip
    assert [(s["name"], s["lower"], s["upper"]) for s in main["symbols"]] == [("n", 0, None)]
    assert main["assumptions"] == ["n <= 64"]
    assert [p["access"] for p in accumulate["params"]] == ["in", "inout"]
    assert manifest["features"]


DESCRIBED = """
b = symbols("b", lower=8, upper=64, multiple_of=8)
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(b, n), f32], k: Prim[i64]):
    fact(n <= 128, "the longest sequence")
    y = sum(x, axes=(1,), keepdims=False)
    found = nonzero(y)
    return y, found
"""
COMMENT = """\
/* x: Tensor((b, n), f32), in
 * k: i64, in
 * result 0: y: Tensor((b,), f32)
 * result 1: found: Tensor((nonzeros, 1), i64)
 * 8 <= b <= 64, a multiple of 8
 * n >= 1
 * nonzeros >= 0, computed by the call
 * the program assumes n <= 128 */
"""


def test_the_header_states_shapes_types_ranges_and_assumptions(tmp_path):
    made = tw.export(tw.parse(DESCRIBED), tmp_path / "made", kind="object", name="m").directory
    assert COMMENT in (made / "m.h").read_text()
    (main,) = json.loads((made / "m.json").read_text())["functions"]
    assert main["results"][1]["shape"] == ["nonzeros", "1"]
    assert main["symbols"][0] == {
        "name": "b", "lower": 8, "upper": 64, "multiple_of": 8, "known_at_entry": True,
    }  # fmt: skip
    assert main["symbols"][2]["known_at_entry"] is False


def test_the_weights_are_safetensors(exported, module):
    from safetensors.numpy import load_file

    found = load_file(exported / "small.safetensors")
    assert set(found) >= {"bias"}
    assert (found["bias"] == module.constants["bias"].load()).all()


def left_behind(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_directory_that_exists(module, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine").write_text("precious")
    with pytest.raises(ExportDirectoryError, match="exists"):
        tw.export(module, tmp_path / "here")
    assert left_behind(tmp_path) == ["here"]
    assert left_behind(tmp_path / "here") == ["mine"]


def test_a_parent_that_is_a_file(module, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportDirectoryError, match="cannot write to"):
        tw.export(module, tmp_path / "file" / "model")


def test_a_directory_that_cannot_be_written(module, tmp_path, monkeypatch):
    def refuse(*_args: object, **_kwargs: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(ExportDirectoryError, match="Permission denied"):
        tw.export(module, tmp_path / "model")
    assert left_behind(tmp_path) == []


def test_a_failed_export_leaves_no_files(module, tmp_path, monkeypatch):
    def full(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilewright.codegen.export.package.write_weights", full)
    with pytest.raises(ExportDirectoryError, match="No space left on device"):
        tw.export(module, tmp_path / "model")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("kind", ["shared", "static", "object", "wasm"])
def test_the_linker_is_missing(module, tmp_path, monkeypatch, kind):
    """The error is raised before the program is compiled."""
    link.linker.cache_clear()
    monkeypatch.setattr(link, "find_spec", lambda _name: None)
    monkeypatch.setattr("tilewright.codegen.export.package.compile_artifact", None)
    with pytest.raises(LinkerMissingError, match=r"(?s)ziglang.*tilewright\[cross\]"):
        tw.export(module, tmp_path / "model", kind=kind)
    link.linker.cache_clear()
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("name", ["", "a-b", "1st", "a b", "../x", "é"])
def test_a_name_that_is_not_a_c_identifier(module, tmp_path, name):
    with pytest.raises(ExportError, match="is not a valid C identifier"):
        tw.export(module, tmp_path / "model", name=name)


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("tw", "object", "is reserved for"), ("tilewright", "wasm", "is reserved for"),
        ("tw_pool", "static", "is reserved for"), ("class", "shared", "a Python keyword"),
        ("json", "shared", "would shadow the Python module 'json'"), (3, "shared", "not a valid C"),
        ("numpy", "shared", "would shadow the Python module 'numpy'"),
        ("torch", "shared", "would shadow the Python module 'torch'"),
        ("pytest", "shared", "would shadow the Python module 'pytest'"),
    ],
)  # fmt: skip
def test_a_reserved_name(module, tmp_path, name, kind, why):
    with pytest.raises(ExportError, match=why):
        tw.export(module, tmp_path / "model", name=name, kind=kind)
    assert left_behind(tmp_path) == []


RENAMED = """
n = symbols("n", lower=1)
@graph_func
def {name}(x: Tensor[(n,), f32]):
    y = add(x, x)
    return y
"""


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_reserved_function_name(tmp_path, name):
    with pytest.raises(ExportError, match=rf"function name '{name}' is reserved"):
        tw.export(tw.parse(RENAMED.format(name=name)), tmp_path / "model")
    assert left_behind(tmp_path) == []


def test_a_function_name_with_the_symbol_of_another_model(tmp_path):
    message = "the symbol NAME_b_open, which function 'open' of a model with the name NAME_b has"
    with pytest.raises(ExportError, match=message):
        tw.export(tw.parse(RENAMED.format(name="b_open")), tmp_path / "model", name="a")
    assert left_behind(tmp_path) == []


def test_the_reserved_names_are_those_of_the_interface(tmp_path):
    """The names in the exported header and loaders."""
    taken: set[str] = set()
    for kind in ("shared", "wasm"):
        made = tw.export(tw.parse(RENAMED.format(name="f")), tmp_path / kind, kind=kind, name="own")
        taken |= set(re.findall(r"\bown_(\w+)", (made.directory / "own.h").read_text()))
    sources = "".join((link.NATIVE / name).read_text() for name in ("wasm.c", "pool.c", "python.c"))
    taken |= set(re.findall(r"NAMED\(TW_NAME, (\w+)\)", sources))
    script = (made.directory / "own.mjs").read_text()
    script = script.split("\nclass Model ")[1]
    methods = set(re.findall(r"^  (\w+)\(.*\) \{$", script, re.MULTILINE)) - {"constructor"}
    model = (link.NATIVE / "loader.py").read_text().split("\nclass Model:")[1].split("\nclass ")[0]
    attributes = set(re.findall(r"self\.([a-z]\w*) = |def ([a-z]\w*)\(self", model))
    attributes = {name for pair in attributes for name in pair if name}
    assert taken - {"f", "f_into", "f_needs"} | methods | attributes == RESERVED


STATEFUL = """
@graph_func
def f(count: State[Tensor[(2,), f32]]):
    more = add(count, 1.0)
    return updates(count=more)
"""


def test_the_reserved_names_of_states_are_those_of_the_interface(tmp_path):
    made = tw.export(tw.parse(STATEFUL), tmp_path / "made", name="own")
    taken = set(re.findall(r"\bown_(state\w*)", (made.directory / "own.h").read_text()))
    part = (link.NATIVE / "loader_state.py").read_text().split("\nclass State:")[0]
    methods = set(re.findall(r"def ([a-z]\w*)\(self", part))
    script = (link.NATIVE / "loader.mjs").read_text()
    found = re.findall(r'this\.(\w+) = \(values|defineProperty\(this, "(\w+)"', script)
    members = {name for pair in found for name in pair if name}
    assert members == {"newState", "state"}
    assert taken | methods | members == STATE_NAMES


def test_a_function_without_state_may_have_the_name_of_one(tmp_path):
    for kind in ("shared", "wasm"):
        tw.export(tw.parse(RENAMED.format(name="state")), tmp_path / kind, kind=kind, name="own")
    spec = importlib.util.spec_from_file_location("own", tmp_path / "shared" / "own.py")
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    assert callable(loader.load().state)


@pytest.mark.parametrize("path", [None, 3, b"here", "a\0b", "x" * 300])
def test_invalid_paths(module, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportDirectoryError):
        tw.export(module, path)
    assert left_behind(tmp_path) == []


def test_a_dangling_symbolic_link(module, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExportDirectoryError, match="exists"):
        tw.export(module, tmp_path / "link")
    assert left_behind(tmp_path) == ["link"]


@pytest.mark.parametrize("limit", [0, 2000, 60_000])
def test_a_disk_that_is_full(module, tmp_path, limit):
    """The system limits the size of all files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    tw.export(module, tmp_path / "before")  # creates the cache files of the linker
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(ExportDirectoryError, match="File too large"):
            tw.export(module, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert left_behind(tmp_path) == ["before"]


def test_an_object_that_is_not_a_program(tmp_path):
    with pytest.raises(NotAProgramError, match="got int"):
        tw.export(3, tmp_path / "model")


def test_an_unknown_kind(module, tmp_path):
    with pytest.raises(ExportError, match=r"(?s)unknown kind 'dylib'.*kinds are 'shared'"):
        tw.export(module, tmp_path / "model", kind="dylib")


def test_an_unknown_target(module, tmp_path):
    with pytest.raises(UnknownTargetError, match=r"(?s)unknown architecture 'sparc'.*riscv64"):
        tw.export(module, tmp_path / "model", target=tw.Target("cpu", arch="sparc"))
    assert left_behind(tmp_path) == []


SENSITIVE = """
    import sys
    import tilewright as tw
    from tilewright.ir.symbolic import var
    from tests.codegen.export.conftest import build

    def program(rows, columns):
        return tw.parse(f'''
    {rows}, {columns} = symbols("{rows} {columns}", lower=1)

    @graph_func
    def main(x: Tensor[({rows}, {columns}), f32], y: Tensor[({rows}, 3, {columns}), bf16]):
        a = argmax(x, axis=0)
        b = softmax(y, axis=1)
        c = sum(y, axes=(0,), keepdims=False)
        d = softmax(x, axis=-1)
        return a, b, c, d
    ''')
"""
"""A program with many reductions, selections and guards of symbolic sizes."""

ALONE = """
    tw.export(program("n", "m"), sys.argv[1])
    tw.export(build(), sys.argv[2], name="small")
"""
AFTER_OTHERS = """
    import os
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # one core
    symbols = [var(f"v{k}") for k in range(1000)]
    kept = [(a // 3 + 1) * b % 7 for a, b in zip(symbols, symbols[1:])]
    tw.compile(program("m", "n"), target=tw.Target("cpu", threads=3))
    tw.export(build(), sys.argv[2], name="small")
    tw.export(program("n", "m"), sys.argv[1])
"""


def exported_by(code: str, folder: Path, seed: str) -> dict[str, bytes]:
    """Export in a new process with an empty cache."""
    made = [folder / "first", folder / "second"]
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SENSITIVE + code), *made],
        env={**os.environ, "TILEWRIGHT_CACHE": str(folder / "cache"), "PYTHONHASHSEED": seed},
        cwd=ROOT, check=True,
    )  # fmt: skip
    return {f"{p.parent.name}/{p.name}": p.read_bytes() for m in made for p in m.iterdir()}


def test_exported_files_do_not_depend_on_earlier_work(tmp_path):
    once = exported_by(ALONE, tmp_path / "once", "1")
    again = exported_by(AFTER_OTHERS, tmp_path / "again", "2")
    assert [name for name in sorted(once) if once[name] != again.get(name)] == []
    assert set(once) == set(again)
