"""The exported Python loader, in processes without Tilewright: calls, altered files, threads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import CallError
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import call_prim, run_graph

pytestmark = pytest.mark.slow


def plain(folder: Path, code: str, **files: np.ndarray) -> subprocess.CompletedProcess[str]:
    """Run code with the folder of the loader on the path, in a process without Tilewright."""
    for name, array in files.items():
        np.save(folder.parent / f"{name}.npy", array)
    head = f"""
        import sys
        sys.modules["tilewright"] = None
        sys.path.insert(0, {str(folder)!r})
        import numpy as np
        from small import ModelError, load
        def read(name): return np.load({str(folder.parent)!r} + "/" + name + ".npy")
        def write(name, array): np.save({str(folder.parent)!r} + "/" + name + ".npy", array)
    """
    text = textwrap.dedent(head) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-I", "-c", text], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def copy(exported, tmp_path) -> Path:
    """A copy of the exported directory that a test may change."""
    shutil.copytree(exported, tmp_path / "copy")
    return tmp_path / "copy"


def load_error(folder: Path) -> str:
    """Return the message of the ModelError that loading a directory raises."""
    done = plain(folder, "try: load()\nexcept ModelError as e: print(e)\nelse: print('loaded')")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_agree_with_the_interpreter(module, copy):
    rng = np.random.default_rng(1)
    cases = [(n, rng.standard_normal((n, 24)), rng.standard_normal((n, 40))) for n in (1, 13)]
    for n, *pair in cases:
        x, y = (array.astype(np.float32) for array in pair)
        code = """
            model = load()
            c, d = model.main(read("x"), read("y"))
            s = model.scores(read("y"))
            model.close()
            write("c", c), write("d", d), write("s", s)
            t = read("t").copy()
            assert load().accumulate(read("u"), t) is t
            write("t", t)
        """
        u, t = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        done = plain(copy, code, x=x, y=y, u=u, t=t)
        assert done.returncode == 0, done.stderr
        wanted = dict(zip("cd", run_graph(module, (x, y)), strict=True))
        (wanted["s"],) = run_graph(module, (y,), function="scores")
        (wanted["t"],) = call_prim(module.prim("accumulate"), (u, t))
        for name, array in wanted.items():
            got = np.load(copy.parent / f"{name}.npy")
            np.testing.assert_allclose(got, array, rtol=2e-5, atol=2e-5)


def test_error_codes_of_invalid_calls(copy):
    code = """
        model = load()
        x, y = np.zeros((3, 24), np.float32), np.zeros((3, 40), np.float32)
        frozen = np.zeros(3, np.float32)
        frozen.flags.writeable = False
        calls = [
            (model.main, (x.astype("f8"), y)), (model.main, (x, y[:2])), (model.main, (x[0], y)),
            (model.main, (x.T, y)), (model.main, (x,)), (model.main, (x.astype(">f4"), y)),
            (model.main, (np.array(["a"]), y)), (model.accumulate, (frozen * 1, frozen)),
            (model.main, (np.zeros((65, 24), np.float32), np.zeros((65, 40), np.float32))),
            (model.main, ([[1], [1, 2]], y)), (model.accumulate, (frozen, [0.0] * 3)),
        ]
        for function, arguments in calls:
            try: function(*arguments)
            except ModelError as error: print(error.code)
    """
    done = plain(copy, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "3", "2", "4", "0", "1", "1", "6", "9", "1", "1"]


HELP = """\
accumulate(x: 'Tensor((n,), f32)', total: 'Tensor((n,), f32)') -> 'total : Tensor((n,), f32)'
    Compiled function 'accumulate'.

    Parameters
    ----------
    x : Tensor((n,), f32)
        Read.
    total : Tensor((n,), f32)
        Read, and written in place.

    Returns
    -------
    total : Tensor((n,), f32)
        The parameter 'total', written in place.

    Notes
    -----
    n is an integer of at least 0
"""


def test_arguments_by_name_and_named_results(module, copy):
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((3, width)).astype(np.float32) for width in (24, 40))
    code = """
        model, x, y = load(), read("x"), read("y")
        results = model.main(y=y, x=x)
        write("c", results.c), write("d", model.main(x, y=y).d)
        assert isinstance(results, tuple) and len(results) == 2
        help(model.accumulate)
        for arguments, named in [
            ((x,), {"Y": y}), ((x,), {"z": y}), ((x,), {"x": x, "y": y}), ((), {"y": y}),
            ((x, y, y), {"x": y}),
        ]:
            try: model.main(*arguments, **named)
            except ModelError as error: print(error)
    """
    done = plain(copy, code, x=x, y=y)
    assert done.returncode == 0, done.stderr
    for name, wanted in zip("cd", run_graph(module, (x, y)), strict=True):
        got = np.load(copy.parent / f"{name}.npy")
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)
    assert HELP in "\n".join(line.rstrip() for line in done.stdout.splitlines())
    exe = tw.compile(module)
    expected = []
    for arguments, named in [
        ((x,), {"Y": y}), ((x,), {"z": y}), ((x,), {"x": x, "y": y}), ((), {"y": y}),
        ((x, y, y), {"x": y}),
    ]:  # fmt: skip
        with pytest.raises(CallError) as caught:
            exe(*arguments, **named)
        expected.append(f"{caught.value.where}: {caught.value.message}")
    assert done.stdout.splitlines()[-5:] == expected


def test_integers_have_64_bits(tmp_path):
    program = """
n = symbols("n", lower=0)
@prim_func
def main(k: Int, x: InOut[(n,), i64]):
    for i in range(n):
        x[i] = x[i] + i64(k)
"""
    tw.export(tw.parse(program), tmp_path / "small", name="small")
    code = """
        model, x = load(), np.zeros(2, np.int64)
        for k in (3, np.int32(-1), -2**63, 2**63, 1.5, "1", None):
            try: print(model.main(k, x)[0])
            except ModelError as error: print(error.code)
    """
    done = plain(tmp_path / "small", code)
    assert done.stdout.split() == ["3", "2", str(2 - 2**63), "11", "1", "1", "1"], done.stderr


def test_threads_share_a_model(copy):
    code = """
        from concurrent.futures import ThreadPoolExecutor
        model, x = load(), np.ones((9, 24), np.float32)
        wanted = model.main(x, np.zeros((9, 40), np.float32))[0]
        def run(k):
            y = np.full((9, 40), k, np.float32)
            return np.allclose(model.main(x, y)[0], wanted + k, atol=1e-4)
        with ThreadPoolExecutor(4) as pool:
            print(all(pool.map(run, range(200))))
    """
    assert plain(copy, code).stdout.strip() == "True"


def test_results_outlive_the_model(copy):
    code = """
        model = load()
        c, _ = model.main(np.ones((2, 24), np.float32), np.ones((2, 40), np.float32))
        before = c.copy()
        model.close()
        print(np.array_equal(before, c))
    """
    assert plain(copy, code).stdout.strip() == "True"


def test_the_command_lists_the_functions(copy):
    done = subprocess.run(
        [sys.executable, "-I", copy / "small.py"], capture_output=True, text=True, check=True
    )
    assert "main(x: Tensor((n, 24), f32), y: Tensor((n, 40), f32))" in done.stdout


def change(folder: Path, **facts: object) -> None:
    path = folder / "small.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


@pytest.mark.parametrize("name", ["libsmall.so", "small.safetensors", "small.h", "small.py"])
def test_a_changed_byte(copy, name):
    data = bytearray((copy / name).read_bytes())
    data[-2] ^= 1
    (copy / name).write_bytes(data)
    message = load_error(copy) if name != "small.py" else load_error_of_changed_loader(copy)
    damaged = "block 1 of 1 of the weights, bytes" if name == "small.safetensors" else "the sha256 "
    assert f"{name}: {damaged}" in message


def load_error_of_changed_loader(folder: Path) -> str:
    """Return the message if the loader file itself differs; another copy loads the directory."""
    code = f"try: load({str(folder)!r})\nexcept ModelError as e: print(e)"
    whole = folder.parent / "whole"
    shutil.copytree(folder, whole)
    (whole / "small.py").write_bytes((folder / "small.py").read_bytes()[:-2] + b")\n")
    return plain(whole, code).stdout


@pytest.mark.parametrize("name", ["libsmall.so", "small.safetensors"])
def test_a_truncated_file(copy, name):
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data[: len(data) // 2])
    assert f"{name}: expected {len(data)} bytes, got {len(data) // 2} bytes" in load_error(copy)


def test_a_missing_file(copy):
    (copy / "small.safetensors").unlink()
    assert "the file is missing or not a regular file" in load_error(copy)


def test_files_that_are_symbolic_links(copy):
    """Volumes of Kubernetes, caches of models, and build systems consist of links."""
    store = copy.parent / "store"
    store.mkdir()
    for path in list(copy.iterdir()):
        if path.is_file():
            shutil.move(path, store / path.name)
            path.symlink_to(store / path.name)
    done = plain(copy, "print(load().scores(np.zeros((1, 2), np.float32)).tolist())")
    assert (done.returncode, done.stdout) == (0, "[[0.5, 0.5]]\n"), done.stderr


def test_a_symbolic_link_to_an_altered_file_or_to_none(copy):
    link, real = copy / "libsmall.so", copy.parent / "elsewhere"
    shutil.move(link, real)
    link.symlink_to(real)
    real.write_bytes(real.read_bytes()[:-1] + b"?")
    assert "the sha256 differs from that in the manifest" in load_error(copy)
    real.unlink()
    assert "the file is missing or not a regular file" in load_error(copy)


@pytest.mark.parametrize("name", ["../libsmall.so", "/etc/passwd", "a/b.so", "..", "", "a\\b"])
@pytest.mark.parametrize("key", ["library", "weights"])
def test_a_name_outside_the_directory(copy, key, name):
    change(copy, **{key: name})
    assert "is not the name of a file in this directory" in load_error(copy)


def test_a_file_outside_the_directory(copy):
    change(copy, files={"../../secret": {"sha256": "", "bytes": 0}})
    assert "is not the name of a file in this directory" in load_error(copy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read the manifest"),
        ("{", "cannot read the manifest"),
        ("[" * 100_000, "cannot read the manifest"),
        ("[]", "expected a manifest of schema 1, got None"),
        ("{}", "expected a manifest of schema 1, got None"),
        ('{"schema": 99}', "expected a manifest of schema 1, got 99"),
        ('{"schema": 1}', "expected 'files' of type dict, got NoneType"),
        (
            '{"schema": 1, "files": {}, "functions": 3}',
            "'functions' of type list, got int",
        ),
    ],
)
def test_a_malformed_manifest(copy, text, message):
    (copy / "small.json").write_text(text)
    assert message in load_error(copy)


def test_files_without_a_sha256(copy):
    change(copy, files={})
    assert "the manifest does not list this file" in load_error(copy)


def test_another_machine(copy):
    change(copy, arch="aarch64")
    assert "the library requires aarch64, but this machine is" in load_error(copy)


def test_a_function_that_the_library_lacks(copy):
    manifest = json.loads((copy / "small.json").read_text())
    manifest["functions"][0]["symbol"] = "small_nothing"
    change(copy, functions=manifest["functions"])
    assert "the library does not define the symbol 'small_nothing'" in load_error(copy)


THREADED = """
n, m, k = symbols("n m k", lower=1)

@graph_func
def main(a: Tensor[(n, k), f32], b: Tensor[(k, m), f32]):
    c = matmul(a, b)
    return c
"""


@pytest.fixture(scope="module")
def threaded(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("threaded") / "small"
    target = tw.Target("cpu", threads=4)
    return tw.export(tw.parse(THREADED), made, target=target, kind="shared", name="small").directory


def test_loops_run_on_threads_of_the_library(threaded):
    """Results are bit-identical for any number of threads, callers, and forked children."""
    code = """
        import os, time
        from concurrent.futures import ThreadPoolExecutor
        def alive(wanted=0):
            end = time.monotonic() + 5  # the system lists finished threads for a short time
            while (n := len(os.listdir("/proc/self/task"))) != wanted and time.monotonic() < end:
                if not wanted: break
            return n
        child = os.fork()  # the threads of NumPy exit at the first fork
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((300, 300), dtype=np.float32) for _ in range(2))
        alone = load(threads=1)
        wanted, before = alone.main(a, b).tobytes(), alive()
        for threads in (2, 4):
            model = load(threads=threads)
            assert model.main(a, b).tobytes() == wanted
            assert alive() == before + threads - 1, (alive(), before, threads)
            with ThreadPoolExecutor(6) as callers:
                got = list(callers.map(lambda _: model.main(a, b).tobytes(), range(60)))
            assert set(got) == {wanted}
            child = os.fork()
            if child == 0:
                good = model.main(a, b).tobytes() == wanted and alive() == threads
                model.close()
                os._exit(not (good and alive(1) == 1))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            model.close()
            assert alive(before) == before
        kept = load()
        assert kept.threads == min(4, len(os.sched_getaffinity(0)))
        assert kept.main(a, b).tobytes() == wanted
        print("passed")
    """
    done = plain(threaded, code)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


def test_more_threads_than_the_library_supports(threaded):
    code = """
        for threads in (0, 5, -1):
            try: load(threads=threads)
            except ModelError as e: print(e.code, e)
    """
    expected = "".join(f"19 expected 1 to 4 threads, got {n}\n" for n in (0, 5, -1))
    assert plain(threaded, code).stdout == expected


def test_a_manifest_with_an_invalid_number_of_threads(copy):
    path = copy / "small.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "threads": "many"}))
    expected = "'threads' of the manifest must be a positive integer, got 'many'\n"
    assert load_error(copy) == expected


NARROW = """
n = symbols("n", lower=0)

@prim_func
def main(x: Buffer[(n,), i4], a: Buffer[(n,), f8_e4m3], q: InOut[(n,), u2], y: Out[(n,), i4],
         z: Out[(n,), f8_e5m2]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[n - 1 - vi] + i4(1)
    for j in range(n):
        with block("z"):
            vj = spatial(j)
            z[vj] = f8_e5m2(f32(a[vj]) * 1.5)
    for k in range(n):
        with block("q"):
            vk = spatial(k)
            q[vk] = q[vk] + u2(x[vk])
"""
"""Packed elements and 8-bit floats as arguments, written in place, and as results."""


def narrow_arguments(n: int) -> list[np.ndarray]:
    """Return arguments of ``NARROW``."""
    rng = np.random.default_rng(n)
    x = rng.integers(-8, 8, n).astype(dtype("i4").numpy)
    a = rng.integers(-4, 5, n).astype(dtype("f8_e4m3").numpy)
    return [x, a, rng.integers(0, 4, n).astype(dtype("u2").numpy)]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("narrow") / "small"
    return tw.export(tw.parse(NARROW), made, name="small").directory


@pytest.mark.parametrize("n", [0, 1, 2, 7, 64])
def test_packed_elements_and_narrow_floats(narrow, n):
    given = narrow_arguments(n)
    bits = {f"b{k}": a.view(np.uint8) for k, a in enumerate(given)}
    done = plain(
        narrow,
        """
        import ml_dtypes
        kinds = (ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.uint2)
        given = [read(f"b{k}").view(t) for k, t in enumerate(kinds)]
        q, y, z = load().main(*given)
        assert q is given[2]
        assert (y.dtype.name, z.dtype.name) == ("int4", "float8_e5m2")
        for name, array in (("q", q), ("y", y), ("z", z)):
            write(name, array.astype(np.float32))
        """,
        **bits,
    )
    assert done.returncode == 0, done.stderr
    for name, want in zip("qyz", call_prim(tw.parse(NARROW).prim("main"), given), strict=True):
        got = np.load(narrow.parent / f"{name}.npy")
        np.testing.assert_array_equal(got, want.astype(np.float32))


COMPLEX = """
n = symbols("n", lower=0)

@prim_func
def main(x: Buffer[(n,), c64], w: Buffer[(n,), c128], q: InOut[(n,), c64], y: Out[(n,), c128]):
    for i in range(n):
        with block("q"):
            v = spatial(i)
            q[v] = q[v] * x[v] + 1j
        with block("y"):
            v = spatial(i)
            y[v] = conj(w[v]) / c128(2.0) + c128(x[n - 1 - v])
"""
"""Complex arguments, written in place, and results."""


def complex_arguments(n: int) -> list[np.ndarray]:
    """Return arguments of ``COMPLEX``."""
    rng = np.random.default_rng(n)
    parts = rng.integers(-4, 5, (3, n, 2)).astype(np.float64)
    x, w, q = (part.reshape(n, 2).view(np.complex128)[:, 0] for part in parts)
    return [x.astype(np.complex64), w.copy(), q.astype(np.complex64)]


@pytest.fixture(scope="module")
def of_complex(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("complex") / "small"
    return tw.export(tw.parse(COMPLEX), made, name="small").directory


@pytest.mark.parametrize("n", [0, 1, 7])
def test_complex_numbers(of_complex, n):
    given = complex_arguments(n)
    done = plain(
        of_complex,
        """
        given = [read(f"a{k}") for k in range(3)]
        q, y = load().main(*given)
        assert q is given[2] and y.dtype == np.complex128
        write("q", q)
        write("y", y)
        try: load().main(given[0].real.copy(), *given[1:])
        except ModelError as error: print(error)
        """,
        **{f"a{k}": a for k, a in enumerate(given)},
    )
    assert done.returncode == 0, done.stderr
    assert "expected dtype c64, got f32" in done.stdout
    for name, want in zip("qy", call_prim(tw.parse(COMPLEX).prim("main"), given), strict=True):
        np.testing.assert_array_equal(np.load(of_complex.parent / f"{name}.npy"), want)
