"""The commands ``compile``, ``run`` and ``bench``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def test_compile_lists_kernels_and_writes_the_artifact(run, matmul: Path, tmp_path: Path) -> None:
    out = tmp_path / "matmul.artifact"
    ran = run("compile", matmul, "-o", out)
    assert ran.code == 0
    assert "matmul" in ran.out
    assert out.stat().st_size > 1000


def test_compile_emits_assembly(run, matmul: Path, trace: Path) -> None:
    ran = run("compile", matmul, "--trace", trace, "--emit", "assembly", "--kernel", "matmul")
    assert "ret" in ran.out


def test_run_reads_arguments_from_a_file(run, matmul: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    a = draw.standard_normal((5, 16), np.float32)
    b = draw.standard_normal((16, 24), np.float32)
    given, saved = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, A=a, B=b)
    ran = run("run", matmul, "--inputs", given, "--save", saved, "--json")
    assert ran.data["results"][0]["shape"] == [5, 24]
    np.testing.assert_allclose(np.load(saved)["result_0"], a @ b, atol=1e-5)


def test_run_reports_missing_arguments(run, matmul: Path, tmp_path: Path) -> None:
    given = tmp_path / "in.npz"
    np.savez(given, A=np.ones((5, 16), np.float32))
    ran = run("run", matmul, "--inputs", given)
    assert ran.code == 1
    assert "does not contain B" in ran.err


def test_run_rejects_a_file_without_arguments(run, matmul: Path) -> None:
    ran = run("run", matmul, "--inputs", matmul)
    assert ran.code == 1
    assert "expected an .npz file, got a file that is not a ZIP archive" in ran.err


def test_run_rejects_a_damaged_archive(run, matmul: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", A=np.ones((8, 8), np.float32), B=np.ones((8, 8), np.float32))
    data = bytearray((tmp_path / "good.npz").read_bytes())
    data[60:90] = b"z" * 30
    (tmp_path / "damaged.npz").write_bytes(bytes(data))
    objects = np.array([{}], dtype=object)
    np.savez(tmp_path / "objects.npz", A=objects, B=objects)
    for name in ("damaged.npz", "objects.npz"):
        ran = run("run", matmul, "--inputs", tmp_path / name)
        assert ran.code == 1
        assert ran.err.startswith("Invalid input file: an array of the file cannot be read: ")
        assert name in ran.err


def test_run_rejects_a_size_of_many_digits(run, matmul: Path) -> None:
    ran = run("run", matmul, "--size", "n=" + "9" * 5000)
    assert ran.code == 1
    assert "the value is an integer of at most 40 characters" in ran.err
    assert len(ran.err) < 400


def test_run_rejects_a_negative_seed(run, matmul: Path, capsys) -> None:
    with pytest.raises(SystemExit):
        run("run", matmul, "--seed", "-1")
    assert "expected an integer that is not negative, got '-1'" in capsys.readouterr().err


def test_run_at_a_given_size(run, network: Path) -> None:
    ran = run("run", network, "--size", "n=10", "--json")
    assert ran.data["results"][0]["shape"] == [10, 8]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("n", "the form SYMBOL=VALUE"), ("q=3", "symbols are n"), ("n=x", "such as n=4")],
)
def test_invalid_size_is_rejected(run, network: Path, size: str, expected: str) -> None:
    ran = run("run", network, "--size", size)
    assert ran.code == 1
    assert expected in ran.err


def test_bench_reports_the_measurement(run, network: Path) -> None:
    data = run("bench", network, "--size", "n=4", "--json").data
    assert data["shapes"] == "n = 4"
    shares = sum(kernel["share"] for kernel in data["kernels"])
    assert shares + data["outside"] / data["total"] == pytest.approx(1.0)
    assert data["low"] <= data["median"] <= data["high"]
    assert data["machine"]["cores"]


def test_bench_with_options_and_verdict(run, network: Path) -> None:
    chosen = ("--caches", "cold", "--threads", "1", "--pin", "--budget", "0.2")
    data = run("bench", network, "--size", "n=4", *chosen, "--json").data
    assert data["conditions"].startswith("cold caches, 1 thread, pinned to separate cores")
    assert data["verdict"]["agrees"]
    assert data["verdict"]["error"] <= data["verdict"]["bound"]
    assert data["machine"]["processor"]
    assert data["low"] <= data["median"] <= data["high"]


def test_compile_for_the_browser(run, matmul: Path) -> None:
    chosen = ("--target", "webgpu", "--features", "f16", "--where", "browser")
    ran = run("compile", matmul, *chosen, "--json")
    assert ran.data["target"] == "Target('webgpu', features=('f16',), where='browser')"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (("--target", "webgpu", "--where", "moon"), "unknown location 'moon'"),
        (("--where", "browser"), "kernels of target 'cpu' do not run in a browser"),
    ],
)
def test_a_location_that_does_not_exist(run, matmul: Path, chosen, expected: str) -> None:
    ran = run("compile", matmul, *chosen)
    assert ran.code == 1
    assert expected in ran.err


def test_run_for_a_browser_names_the_workbench(run, matmul: Path) -> None:
    ran = run("run", matmul, "--target", "webgpu", "--where", "browser")
    assert ran.code == 1
    assert "runs kernels in the page of a workbench" in ran.err


SCALED = """
n = symbols("n")

@prim_func
def scaled(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * 2.0
"""


@pytest.mark.parametrize("command", ["run", "bench"])
def test_size_below_the_lower_bound_is_rejected(run, network: Path, command: str) -> None:
    ran = run(command, network, "--size", "n=-4")
    assert ran.code == 1
    assert ran.err.startswith(
        "Invalid sample value: the value -4 is less than the lower bound 1 of the symbol\n"
        "  at --size n=-4\n"
    )


@pytest.mark.parametrize("command", ["run", "bench"])
def test_negative_shape_is_rejected(run, tmp_path: Path, command: str) -> None:
    program = tmp_path / "scaled.tw"
    program.write_text(SCALED)
    ran = run(command, program, "--size", "n=-4")
    assert ran.code == 1
    assert ran.err.startswith(
        "Invalid size: the shape is (-4,), but sizes are at least 0\n  at parameter 'x'\n"
    )


@pytest.mark.parametrize("command", ["run", "bench"])
@pytest.mark.parametrize("size", [10**13, 10**30])
def test_arguments_that_exceed_the_memory_are_rejected(
    run, matmul: Path, command: str, size: int
) -> None:
    ran = run(command, matmul, "--size", f"n={size}")
    assert ran.code == 1
    assert ran.err.startswith(f"Out of memory: cannot allocate the {size * 64:,} bytes of shape ")
    assert "at parameter 'A'" in ran.err


@pytest.mark.parametrize(("command", "option"), [("compile", "-o"), ("run", "--save")])
def test_output_file_that_cannot_be_written_is_an_error(
    run, matmul: Path, tmp_path: Path, command: str, option: str
) -> None:
    out = tmp_path / "missing" / "out.npz"
    ran = run(command, matmul, option, out)
    assert ran.code == 1
    assert ran.err.startswith(
        f"Invalid output file: cannot write the output file: No such file or directory\n  at {out}"
    )


def test_a_saved_state_continues(run, tmp_path: Path) -> None:
    program = tmp_path / "total.tw"
    program.write_text(
        """
b = symbols("b", lower=1)

@graph_func
def main(x: Tensor[(b, 4), f32], total: State[Tensor[(b, 4), f32]]):
    new = add(total, x)
    y = multiply(new, 2.0)
    return y, updates(total=new)
""",
        encoding="utf-8",
    )
    given, saved = tmp_path / "in.npz", tmp_path / "out.npz"
    x, total = np.ones((2, 4), np.float32), np.zeros((2, 4), np.float32)
    for _ in range(3):
        np.savez(given, x=x, total=total)
        assert run("run", program, "--inputs", given, "--save", saved).code == 0
        total = np.load(saved)["total"]
    assert (total == 3).all()
    assert (np.load(saved)["result_0"] == 6).all()
