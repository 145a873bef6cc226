"""The exported Python loader with outputs of the caller, in processes without Tilewright."""

from __future__ import annotations

import pytest

from tests.codegen.export.test_loader import plain

SETUP = """
        model = load()
        rng = np.random.default_rng(0)
        x, y = (rng.standard_normal((5, k)).astype("f") for k in (24, 40))
        c, d = model.main(x, y)
"""


def run(folder, code: str) -> list[str]:
    done = plain(folder, SETUP + code)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_outputs_of_the_caller_are_written_and_returned(exported):
    lines = run(exported, """
        x.flags.writeable = False
        own = np.empty((5, 40), "f"), np.empty(5, "f")
        results = model.main(x, y=y, out=own)
        print(results.c is own[0], results.d is own[1])
        print(np.array_equal(own[0], c), np.array_equal(own[1], d))
        one = np.empty((5, 24), "f")
        print(model.scores(x, out=one) is one, np.array_equal(one, model.scores(x)))
        total = np.ones(5, "f")
        print(model.accumulate(d, total) is total, np.array_equal(total, 1 + d))
        print(np.array_equal(model.scores(x[::-1].copy()[::-1].copy()), one))
    """)  # fmt: skip
    assert lines == ["True True"] * 4 + ["True"]


@pytest.mark.parametrize(
    ("out", "code", "text"),
    [
        ("x", 0, "number of outputs: expected 2, got 1: main(x: "),
        ("(c, d, d)", 0, "number of outputs: expected 2, got 3"),
        ("(c, c[0, :5])", 8, "the output shares memory with result 'c'"),
        ("(c, x.reshape(-1)[:5])", 8, "the output shares memory with parameter 'x'"),
        ("(c, np.empty(4, 'f'))", 3, "expected shape (5,), got shape (4,)"),
        ("(c, np.empty(5))", 1, "expected dtype f32, got f64"),
        ("(c, np.empty(10, 'f')[::2])", 4, "expected compact row-major elements, got strides"),
        ("(c, [1.0] * 5)", 1, "expected a NumPy array, because it is written, got list"),
        ("(c, np.broadcast_to(d[:1], 5))", 6, "but the argument is read-only"),
    ],
)
def test_an_output_that_does_not_fit_is_refused(exported, out, code, text):
    lines = run(exported, f"""
        try: model.main(x, y, out={out})
        except ModelError as e: print(e.code, e)
    """)  # fmt: skip
    assert len(lines) == 1
    assert lines[0].startswith(f"{code} function 'main'")
    assert text in lines[0]


def test_results_outlive_the_model_and_are_freed(exported):
    """The peak is that of the memory map: that of ``resource`` includes the process before exec."""
    lines = run(exported, """
        import re
        kept = model.scores(x)
        for k in range(3000): model.scores(np.zeros((512, 512), "f"))
        peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
        model.close()
        print(np.allclose(kept.sum(axis=1), 1, atol=1e-5), peak < 400_000)
        try: model.scores(x)
        except ModelError as e: print(e)
    """)  # fmt: skip
    assert lines == ["True True", "the model is null"]


def test_calls_leave_the_reference_counts_as_they_were(exported):
    """Calls that succeed, fail, and convert arguments, with new results and with outputs."""
    lines = run(exported, """
        import sys
        own, short, wide = np.empty((5, 40), "f"), np.empty(4, "f"), np.ones((5, 24))
        objects = [x, y, c, d, own, short, wide, model._memory, NotImplemented]
        def attempt(*arguments, **named):
            try: model.main(*arguments, **named)
            except ModelError: pass
        def calls():
            for _ in range(100):
                attempt(x, y)
                attempt(x, y, out=(own, d))
                attempt(x, y, out=(own, short))
                attempt(x, y, out=(x, d))
                attempt(x[:4], y)
                attempt(wide, y)
                attempt(x)
                attempt(x, y, out=d)
        def counts(): return [sys.getrefcount(o) for o in objects]
        calls()
        before = counts()
        calls()
        print(before == counts())
    """)  # fmt: skip
    assert lines == ["True"]


def test_a_limit_and_trim(exported):
    lines = run(exported, """
        model.trim()
        small = load(arena_limit=1 << 20)
        print(np.array_equal(small.main(x, y)[0], c))
        try: load(arena_limit=-1)
        except ModelError as e: print(e)
    """)  # fmt: skip
    assert lines == ["True", "arena_limit is -1; it must be at least 0"]


def test_the_time_of_a_call(exported):
    """The least of many short series, because other processes use the processor."""
    lines = run(exported, """
        import time
        a = np.zeros((8, 8), "f"); o = np.empty((8, 8), "f"); a.flags.writeable = False
        def least(call):
            found = []
            for _ in range(300):
                start = time.perf_counter()
                for _ in range(100): call()
                found.append((time.perf_counter() - start) / 100 * 1e6)
            return min(found)
        print(least(lambda: model.scores(a, out=o)), least(lambda: model.scores(a)))
    """)  # fmt: skip
    into, allocated = map(float, lines[0].split())
    assert into < 4
    assert allocated < 6
