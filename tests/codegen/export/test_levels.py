"""One library for several kinds of processors: the chosen level, its results, and its weights."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.compiler import default_scheduled
from tilewright.codegen.export import ExportError
from tilewright.codegen.export.inspection import read_description
from tilewright.codegen.export.levels import LEVELS, level_targets
from tilewright.codegen.export.link import run_linker
from tilewright.codegen.export.machine_levels import missing_by_level
from tilewright.codegen.export.symbols import level_objects
from tilewright.ir.interpreter import run_graph

from tests.codegen.export.conftest import build
from tests.codegen.export.test_cross import emulator
from tests.codegen.export.test_shared import PROGRAMS, filled

X86, ARM = (
    [name for name, (arch, _) in LEVELS.items() if arch == wanted]
    for wanted in ("x86_64", "aarch64")
)
SIZES = (1, 7, 33)
BOUND = {"rtol": 2e-5, "atol": 2e-5}


def program(made: Path, arch: str) -> Path:
    """Compile the C program that prints the levels, with a static library."""
    system = ["gnu"] if arch == "x86_64" else ["musl", "-static"]
    run_linker(
        [
            "cc", "-target", f"{arch}-linux-{system[0]}", *system[1:], "-O1", "-std=c11", "-Wall",
            "-Wextra", "-Werror", f"-I{made}", str(PROGRAMS / "levels.c"),
            str(made / "libsmall.a"), "-o", str(made / "program"),
        ]
    )  # fmt: skip
    return made / "program"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    """The directory of a static library with all x86-64 levels, and a program that uses it."""
    made = tmp_path_factory.mktemp("levels") / "fleet"
    tw.export(build(), made, name="small", kind="static", levels=(*X86, "native"))
    program(made, "x86_64")
    return made


@pytest.fixture(scope="module")
def arm(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("levels") / "arm"
    tw.export(build(), made, name="small", kind="static", levels=ARM)
    program(made, "aarch64")
    return made


def loader(made: Path) -> ModuleType:
    """Return the Python loader of an exported library."""
    (path,) = made.glob("*.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(made: Path, *emulated: str, level: str = "") -> dict[str, str]:
    """Run the program, compare its results, and return its output by the words before colons."""
    done = subprocess.run(
        [*emulated, made / "program", made / "small.safetensors", made / "out", *map(str, SIZES)],
        env={**os.environ, "TILEWRIGHT_LEVEL": level}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert (done.returncode == 0) == ("open" not in lines), done.stderr
    if done.returncode == 0:
        module, got = build(), np.fromfile(made / "out", np.float32)
        for n in SIZES:
            for array in run_graph(module, (filled((n, 24), 1), filled((n, 40), 2))):
                part, got = got[: array.size], got[array.size :]
                np.testing.assert_allclose(part.reshape(array.shape), array, **BOUND)
        assert got.size == 0
    return lines


@pytest.mark.parametrize(
    ("cpu", "chosen", "lacking"),
    [("Nehalem", "x86-64-v2", "avx2"), ("Haswell", "x86-64-v3", "avx512bw")],
)
def test_an_older_processor_takes_the_last_level_that_it_can_execute(fleet, cpu, chosen, lacking):
    lines = called(fleet, emulator("x86_64"), "-cpu", cpu)
    assert lines["chosen"] == chosen
    assert lines["x86-64-v2"] == "runs"
    assert lines["x86-64-v4"] == lacking


def test_this_machine_takes_native_and_runs_every_level_that_it_can_execute(fleet):
    lines, missing = called(fleet), missing_by_level(read_description(fleet))
    assert lines["chosen"] == "native"
    for level in X86:
        assert lines[level] == (missing[level] or "runs")
        forced = called(fleet, level=level)
        if missing[level]:
            text = f"17 this processor lacks {missing[level]}, which level {level!r} requires"
            assert forced["open"] == text
        else:
            assert forced["chosen"] == level


def test_a_processor_below_all_levels(fleet):
    lines = called(fleet, emulator("x86_64"), "-cpu", "Conroe")
    assert lines["open"] == "17 this processor lacks popcnt, which the library requires"


def test_a_level_that_the_processor_cannot_execute_is_refused(fleet):
    lines = called(fleet, emulator("x86_64"), "-cpu", "Nehalem", level="x86-64-v3")
    assert lines["open"] == "17 this processor lacks avx2, which level 'x86-64-v3' requires"


def test_an_unknown_level_is_refused(fleet):
    names = ", ".join((*X86, "native"))
    text = f"24 the library has no level 'x86-64-v5'; its levels are {names}"
    assert called(fleet, level="x86-64-v5")["open"] == text


@pytest.mark.parametrize(
    ("cpu", "chosen"),
    [
        ("cortex-a53", "armv8-a"),
        ("neoverse-n1", "armv8.2-a"),
        ("max,sve=off", "armv8.6-a"),
        ("max", "armv9-a"),
    ],
)
def test_each_level_of_aarch64(arm, cpu, chosen):
    lines = called(arm, emulator("aarch64"), "-cpu", cpu)
    assert lines["chosen"] == chosen
    runs = [level for level in ARM if lines[level] == "runs"]
    assert runs == ARM[: ARM.index(chosen) + 1]


def test_the_weights_are_stored_once(tmp_path):
    """The packed weights of all levels are those of the widest one alone."""
    both = tw.export(
        build(), tmp_path / "both", name="small", levels=("x86-64-v2", "x86-64-v3"),
        weights="packed",
    )  # fmt: skip
    target = tw.Target("cpu", arch="x86_64", features=("avx2",))
    one = tw.export(build(), tmp_path / "one", name="small", target=target, weights="packed")
    files = [made.directory / "small.safetensors" for made in (both, one)]
    assert files[0].read_bytes() == files[1].read_bytes()


CONVOLUTION = """
constant("w", (24, 8, 3, 3), f32)

@graph_func
def main(x: Tensor[(1, 8, 20, 20), f32]):
    y = conv(x, const("w"))
    return y
"""


@pytest.mark.parametrize("text", [None, CONVOLUTION])
def test_all_levels_have_the_layout_of_weights(text):
    """Without AVX-512 this machine cannot pack for level 4, but it can schedule."""
    weight = np.ones((24, 8, 3, 3), np.float32)
    module = tw.parse(text, constants={"w": weight}) if text else build()
    layouts = {
        level: {
            key: (constant.shape, constant.dtype)
            for key, constant in default_scheduled(module, target)[0].constants.items()
            if constant.source == "prepare"
        }
        for level, target in level_targets(X86, tw.Target("cpu"), "shared").items()
    }
    assert layouts["x86-64-v4"]
    assert layouts["x86-64-v2"] == layouts["x86-64-v3"] == layouts["x86-64-v4"]


@pytest.mark.parametrize("weights", ["plain", "auto"])
def test_the_python_loader(tmp_path, monkeypatch, weights):
    made = tw.export(
        build(), tmp_path / "made", name="small", levels=X86, weights=weights
    ).directory
    small, missing = loader(made), missing_by_level(read_description(made))
    runs = [level for level in X86 if not missing[level]]
    x, y = filled((7, 24), 1), filled((7, 40), 2)
    wanted = run_graph(build(), (x, y))
    for level in (None, *runs):
        model = small.load(made, level=level)
        assert model.variant == (level or runs[-1])
        for got, array in zip(model.main(x, y), wanted, strict=True):
            np.testing.assert_allclose(got, array, **BOUND)
    monkeypatch.setenv("TILEWRIGHT_LEVEL", "x86-64-v2")
    assert small.load(made).variant == "x86-64-v2"
    assert small.load(made, level=runs[-1]).variant == runs[-1]
    with pytest.raises(small.ModelError, match=r"no level .v3.; its levels are x86-64-v2"):
        small.load(made, level="v3")


def test_a_library_without_levels(exported, monkeypatch):
    small = loader(exported)
    with pytest.raises(small.ModelError, match="has no levels, got level='x86-64-v3'"):
        small.load(exported, level="x86-64-v3")
    monkeypatch.setenv("TILEWRIGHT_LEVEL", "x86-64-v3")
    assert small.load(exported).variant is None


STATE = """
constant("w", (4, 4), f32)

@graph_func
def main(x: Tensor[(4,), f32], seen: State[Tensor[(4,), f32]]):
    z = add(x, seen)
    return z, updates(seen=z)

@graph_func
def product(x: Tensor[(3, 4), f32]):
    y = matmul(x, const("w"))
    return y
"""


def test_a_model_with_state_and_several_functions(tmp_path):
    weight = np.arange(16, dtype=np.float32).reshape(4, 4)
    module = tw.parse(STATE, constants={"w": weight})
    made = tw.export(module, tmp_path / "made", name="seen", levels=X86[:2]).directory
    seen, ones = loader(made), np.ones(4, np.float32)
    for level in X86[:2]:
        model = seen.load(made, level=level)
        state = model.new_state()
        assert [model.main(ones, state=state)[0] for _ in range(3)] == [1, 2, 3]
        np.testing.assert_array_equal(model.product(np.ones((3, 4), "f")), np.ones((3, 4)) @ weight)
        out = np.empty((3, 4), np.float32)
        model.product(np.ones((3, 4), "f"), out=out)
        np.testing.assert_array_equal(out, np.ones((3, 4)) @ weight)
        assert model.needs("product", x=(3, 4))["results"] == {"y": (3, 4)}


def test_the_description_lists_the_levels(fleet):
    facts = json.loads((fleet / "small.json").read_text())
    assert [level["name"] for level in facts["levels"]] == [*X86, "native"]
    assert facts["levels"][0]["features"] == facts["features"]
    assert facts["target"] == "x86-64-v2, x86-64-v3, x86-64-v4, native"
    assert "avx512f" in facts["levels"][2]["features"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ["x86-64-v9"]}, "(?s)unknown level 'x86-64-v9'.*'x86-64-v2'.*'native'"),
        ({"levels": ["x86-64-v3", "x86-64-v3"]}, "level 'x86-64-v3' is listed twice"),
        ({"levels": ["x86-64-v3", "armv8-a"]}, "'x86-64-v3' is of x86_64.*'armv8-a' of aarch64"),
        ({"levels": X86, "kind": "wasm"}, "an export of kind 'wasm' has no levels"),
        (
            {"levels": X86, "target": tw.Target("cpu", features=("avx2",))},
            r"level 'x86-64-v2' does not fit Target\('cpu', features=\('avx2',\)\)",
        ),
        (
            {"levels": X86, "target": tw.Target("cpu", arch="aarch64")},
            r"level 'x86-64-v2' does not fit Target\('cpu', arch='aarch64'\)",
        ),
        ({"levels": X86, "weights": "replaceable"}, "with 3 levels cannot be replaced"),
    ],
)
def test_levels_that_do_not_fit(module, tmp_path, options, message):
    with pytest.raises(ExportError, match=message):
        tw.export(module, tmp_path / "made", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_function_with_a_name_of_the_interface_of_levels(tmp_path):
    text = "@graph_func\ndef variant(x: Tensor[(4,), f32]):\n    y = relu(x)\n    return y\n"
    with pytest.raises(ExportError, match="function name 'variant' is reserved"):
        tw.export(tw.parse(text), tmp_path / "made", levels=["x86-64-v3"])


def test_levels_are_in_ascending_order():
    targets = level_targets(("native", *reversed(X86)), tw.Target("cpu", threads=2), "object")
    assert list(targets) == [*X86, "native"]
    assert {t.threads for t in targets.values()} == {2}
    assert {t.panel_bits for t in targets.values()} == {1024}


def test_equal_objects_of_levels_are_one(exported):
    """An object that refers to equal objects is shared, one that refers to others is not."""
    folder = exported.parent
    for name, text in {
        "alone": "int alone(int x) { return x + 1; }",
        "other": "int other(int x) { return x * 3; }",
        "caller": "int other(int); int caller(int x) { return other(x); }",
    }.items():
        (folder / f"{name}.c").write_text(text)
        run_linker(["cc", "-c", "-O1", str(folder / f"{name}.c"), "-o", str(folder / f"{name}.o")])
    code = {name: (folder / f"{name}.o").read_bytes() for name in ("alone", "other", "caller")}
    made, _ = level_objects({"a$": code, "b$": {**code, "other": code["other"] + bytes(8)}})
    assert sorted(made) == ["a$alone", "a$caller", "a$other", "b$caller", "b$other"]
    assert b"b$other" in made["b$caller"]
    assert b"a$other" in made["a$caller"]
    same, names = level_objects({"a$": code, "b$": code})
    assert names["b$"] == {name: f"a${name}" for name in code}
    assert sorted(same) == ["a$alone", "a$caller", "a$other"]
