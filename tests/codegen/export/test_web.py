"""Exported models for WebGPU in headless Chromium, against the interpreter."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.errors import ExportError
from tilewright.ir.dtype import f32, i4
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Constant

from tests.codegen.export.pages import ORIGIN, Page, array, given, opened
from tests.codegen.export.test_shared import filled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMPORT = "async (url) => { globalThis.small = await import(`${url}small.mjs`); }"

OPEN = """async (url, file) => {
    const found = await import(`${url}${file}.mjs`);
    const seen = [];
    globalThis.model = await found.load(undefined, { onProgress: (p) => seen.push(p) });
    return seen;
}"""

PROGRAM = """
constant("a", (24, 32), f32)
constant("b", (32,), f32)
constant("c", (32, 5), f32)
constant("start", (2,), f32)
n, k, i, t, w = symbols("n k i t w", lower=0)
m = symbols("m", lower=1)

@graph_func
def mlp(x: Tensor[(n, 24), f32]):
    fact(n <= 1000, "the longest batch", at="model.py:3", by="entry_check")
    p = matmul(x, const("a"))
    q = add(p, const("b"))
    h = gelu(q)
    r = matmul(h, const("c"))
    y = softmax(r, axis=-1)
    return y

@graph_func
def sums(x: Tensor[(n, m), f32], y: Tensor[(n, m), f32]):
    z = add(x, y)
    t = sum(z, axes=(-1,), keepdims=False)
    return z, t

@graph_func
def scan(x: Tensor[(n, 4), f32]):
    @loop(i, count=n)
    def y(
        c: Tensor[(t, 4), f32] = x, e: Tensor[(4,), f32] = each(x)
    ) -> Tuple[Tensor[(w, 4), f32], Tensor[(n, 4), f32]]:
        s = sum(c, axes=(0,))
        h = multiply(s, 0.5)
        a = add(h, e)
        r = reshape(h, (1, 4))
        d = concat(c, r, axis=0)
        return d, a
    grown = y[0]
    every = y[1]
    return grown, every

@graph_func
def count(x: Tensor[(n, 3), f32], seen: State[Tensor[(n, 7), f32]], total: State[Tensor[(2,), f32], const("start")]):
    t = concat(x, x, axis=1)
    new: Tensor[(n, 7), f32] = update_slice(seen, t, (0, 1))
    more: Tensor[(2,), f32] = add(total, 1.0)
    y = sum(seen, axes=(-1,), keepdims=False)
    return y, updates(seen=new, total=more)

@prim_func
def gather(x: Buffer[(n,), f32], at: Buffer[(k,), i64], y: Out[(k,), f32]):
    for i in range(k):
        with block("gather"):
            vi = spatial(i)
            with checked(at[vi], 0, n) as index:
                y[vi] = x[index]

@prim_func
def accumulate(x: Buffer[(n,), u8], total: InOut[(n,), u8]):
    for i in range(n):
        with block("add"):
            vi = spatial(i)
            total[vi] = total[vi] + x[vi]
"""  # noqa: E501


SMALL = """
constant("w", (3,), f32)
constant("q", (5, 3), i4)
n = symbols("n", lower=0)

@prim_func
def scale(x: Buffer[(n, 5), f32], q: Buffer[(5, 3), i4], y: Out[(n, 3), f32]):
    for i in range(n):
        for j in range(3):
            with block("init"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = 0.0
            for k in range(5):
                with block("product"):
                    ui, uj = spatial(i), spatial(j)
                    uk = reduce(k)
                    y[ui, uj] = y[ui, uj] + x[ui, uk] * f32(q[uk, uj])

@graph_func
def packed(x: Tensor[(n, 5), f32]):
    y: Tensor[(n, 3), f32] = call_tir(scale, x, const("q"))
    return y

@graph_func
def main(x: Tensor[(n, 3), f32], y: Tensor[(n, 3), f32]):
    z = add(x, y)
    t = multiply(z, const("w"))
    return t

@graph_func
def count(total: State[Tensor[(2,), f32]]):
    more: Tensor[(2,), f32] = add(total, 1.0)
    return updates(total=more)

@prim_func
def pick(x: Buffer[(n,), f32], at: Buffer[(2,), i64], y: Out[(2,), f32]):
    for i in range(2):
        with block("pick"):
            vi = spatial(i)
            with checked(at[vi], 0, n) as index:
                y[vi] = x[index]

@graph_func
def keep(x: Tensor[(n,), f32], at: Tensor[(2,), i64], last: State[Tensor[(2,), f32]]):
    y: Tensor[(2,), f32] = call_tir(pick, x, at)
    new: Tensor[(2,), f32] = add(last, y)
    return y, updates(last=new)

@prim_func(scheduled=True)
def long(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        with block("write"):
            vi = spatial(i)
            y[vi] = x[vi] + 1
"""


PACKED = (np.arange(15) - 8).reshape(5, 3).astype(i4.numpy)
"""A weight of packed integers of four bits, which has no whole number of bytes."""


def _small() -> Any:
    weight = np.array([1, 2, 3], np.float32)
    return tw.parse(
        SMALL,
        constants={"w": Constant((3,), f32, weight.copy), "q": Constant((5, 3), i4, PACKED.copy)},
    )


def _module() -> Any:
    rng = np.random.default_rng(0)
    shapes = {"a": (24, 32), "b": (32,), "c": (32, 5), "start": (2,)}
    arrays = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    constants = {n: Constant(s, f32, arrays[n].copy) for n, s in shapes.items()}
    return tw.parse(PROGRAM.replace("", ""), constants=constants)


@pytest.fixture(scope="module")
def program() -> Any:
    return _module()


@pytest.fixture(scope="module")
def directory(program: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "net"
    return tw.export(program, folder, target="webgpu", kind="web", name="net").directory


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "small"
    return tw.export(_small(), folder, target="webgpu", kind="web", name="small").directory


@pytest.fixture(scope="module")
def page(chromium: str, directory: Path, small: Path) -> Iterator[Page]:
    with opened(chromium) as made:
        url = made.serve("net", directory)
        made.progress = made.run(OPEN, url, "net")
        made.run(IMPORT, made.serve("small", small))
        yield made


CALL = "async (name, inputs) => lists(await model[name](arrays(inputs)))"


def refusal(page: Page, script: str, *arguments: Any) -> str:
    return page.run(f"(...given) => refusal(async () => ({script})(...given))", *arguments)


def test_the_directory_has_static_files_only(directory):
    names = {path.name for path in directory.iterdir()}
    ends = ("mjs", "d.mts", "wgsl", "wasm", "safetensors", "json", "cdx.json")
    assert names == {f"net.{e}" for e in ends}
    manifest = json.loads((directory / "net.json").read_text())
    assert set(manifest["files"]) == names - {"net.json"}
    assert manifest["kind"] == "web"
    assert "import " not in re.sub(r"//[^\n]*|/\*.*?\*/", "", (directory / "net.mjs").read_text())


def test_progress_of_loading(page, directory):
    size = (directory / "net.safetensors").stat().st_size
    kernels = [p for p in page.progress if p["stage"] == "kernels"]
    weights = [p for p in page.progress if p["stage"] == "weights"]
    assert kernels[-1]["loaded"] == kernels[-1]["total"] == len(kernels) - 1
    assert weights[-1] == {"stage": "weights", "loaded": size, "total": size}


@pytest.mark.parametrize("rows", [0, 1, 7, 64, 127])
def test_network_with_weights(page, program, rows):
    x = filled((rows, 24), 1)
    (got,) = page.run(CALL, "mlp", given(x=x))
    (wanted,) = run_graph(program, (x,), function="mlp")
    np.testing.assert_allclose(array(got), wanted, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 13), (3, 257)])
def test_several_results(page, program, shape):
    x, y = filled(shape, 1), filled(shape, 2)
    results = page.run(CALL, "sums", given(x=x, y=y))
    for got, wanted in zip(results, run_graph(program, (x, y), function="sums"), strict=True):
        np.testing.assert_allclose(array(got), wanted, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_blocks_of_loops_are_buffers_of_the_device(page, program, rows):
    """The size of a block is not stored before it, because its address is not one of memory."""
    x = filled((rows, 4), 1)
    results = page.run(CALL, "scan", given(x=x))
    for got, wanted in zip(results, run_graph(program, (x,), function="scan"), strict=True):
        np.testing.assert_allclose(array(got), wanted, rtol=3e-5, atol=3e-5)


def test_a_long_grid_is_folded(page):
    """70,001 workgroups exceed the limit of 65,535 along one dimension."""
    script = """async (url) => {
        const model = await small.load(url);
        const found = [];
        for (const size of [0, 1, 65535, 65536, 70001, 140000]) {
            const x = { data: new Int32Array(size).map((_, k) => 3 * k), shape: [size] };
            const y = await (await model.long({ x })).read();
            found.push(y.length === size && y.every((value, k) => value === 3 * k + 1));
        }
        model.close();
        return found;
    }"""
    assert page.run(script, f"{ORIGIN}/small") == [True] * 6


def test_packed_weights(page):
    script = """async (url, inputs) => {
        const model = await small.load(url);
        const found = await lists(await model.packed(arrays(inputs)));
        model.close();
        return found;
    }"""
    for rows in (0, 1, 7):
        x = filled((rows, 5), rows)
        (got,) = page.run(script, f"{ORIGIN}/small", given(x=x))
        wanted = x @ PACKED.astype(np.float32)
        np.testing.assert_allclose(array(got), wanted, rtol=1e-5, atol=1e-5)


PLAIN = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    y = add(x, 1.0)
    return y
"""


def test_a_model_without_weights(page, tmp_path):
    made = tw.export(tw.parse(PLAIN), tmp_path / "plain", kind="web", name="plain")
    script = """async (url, inputs) => {
        const model = await (await import(`${url}plain.mjs`)).load();
        const found = await lists(await model.main(arrays(inputs)));
        model.close();
        return found;
    }"""
    x = filled((7,), 1)
    (got,) = page.run(script, page.serve("plain", made.directory), given(x=x))
    np.testing.assert_array_equal(array(got), x + 1)


def test_one_tensor_on_the_device_for_two_arguments(page):
    script = """async () => {
        const x = model.upload("f32", { data: Float32Array.of(1, 2, 3), shape: [1, 3] });
        const [z, total] = await model.sums({ x, y: x });
        const again = await model.sums({ x: z, y: x });
        const found = await lists([...again, z, total, x]);
        x.free();
        x.free();
        return [found, await refusal(() => model.sums({ x, y: z })), await refusal(() => x.read())];
    }"""
    results, *freed = page.run(script)
    values = [r["data"] for r in results]
    assert values == [[3, 6, 9], [18], [2, 4, 6], [12], [1, 2, 3]]
    assert all("the tensor was freed" in text for text in freed)


def test_written_arrays_are_updated(page):
    for size in (0, 1, 5, 8):
        x, total = np.arange(size, dtype=np.uint8), np.full(size, 3, np.uint8)
        script = """async (inputs) => {
            const found = arrays(inputs);
            const result = await model.accumulate(found);
            return [Array.from(found.total.data), result === found.total];
        }"""
        data, same = page.run(script, given(x=x, total=total))
        assert data == (x + total).tolist()
        assert same


def test_states_stay_on_the_device(page, program):
    script = """async () => {
        const state = model.newState({ n: 2 });
        const seen = { data: new Float32Array(7).fill(1), shape: [1, 7] };
        const other = model.newState({ seen });
        const x = { data: Float32Array.of(0, 1, 2, 3, 4, 5), shape: [2, 3] };
        const ones = { data: new Float32Array(3).fill(9), shape: [1, 3] };
        const found = await lists([
            await model.count({ x }, state), await model.count({ x }, state),
            await model.count({ x: ones }, other), await state.get("total"),
            await other.get("seen"),
        ]);
        state.set("total", 4);
        found.push(...(await lists(await state.get("total"))));
        state.set("total", { data: Float32Array.of(8, 9), shape: [2] });
        found.push(...(await lists(await state.get("total"))));
        state.reset();
        found.push(...(await lists([await state.get("total"), await state.get("seen")])));
        const refusals = [
            await refusal(() => model.count({ x: ones }, state)),
            await refusal(() => state.get("none")),
            await refusal(() => state.set("seen", { data: new Float32Array(3), shape: [3] })),
            await refusal(() => model.newState({ k: 1 })),
            await refusal(() => model.newState({})),
            await refusal(() => model.newState({ n: -1 })),
            await refusal(() => model.count({ x }, 3)),
        ];
        other.free();
        other.free();
        refusals.push(await refusal(() => model.count({ x: ones }, other)));
        return [found.map(({ data }) => data), refusals];
    }"""
    values, refusals = page.run(script)
    start = program.constants["start"].load().tolist()
    assert values[:3] == [[0, 0], [6, 24], [7]]
    np.testing.assert_allclose(values[3], np.float32(start) + 2)
    assert values[4] == [1, 9, 9, 9, 9, 9, 9]
    assert values[5:7] == [[4, 4], [8, 9]]
    np.testing.assert_allclose(values[7], start)
    assert values[8] == [0] * 14
    patterns = [
        r"ModelError 3 function 'count', parameter '\w+' .*dimension 0 of shape",
        r"ModelError 0 no state parameter 'none'; names are seen, total",
        r"ModelError 0 state 'seen': expected shape \(2, 7\), got \(3,\)",
        r"ModelError 0 no state parameter or symbol 'k'; names are seen, total, n",
        r"ModelError 0 the shapes of states depend on n; pass newState\(\{ n: 4 \}\)",
        r"ModelError 11 symbol 'n': expected 0 to \d+, got -1",
        r"ModelError 0 function 'count': expected a state of newState\(\), got Number",
        r"ModelError 0 the state was freed",
    ]
    for text, pattern in zip(refusals, patterns, strict=True):
        assert re.match(pattern, text), text


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("{ x: f(2, 23) }", r"3 function 'mlp', parameter 'x' .*dimension 1 of shape \(2, 23\)"),
        ("{ x: f(6) }", r"2 function 'mlp', parameter 'x' .*expected rank 2, got rank 1"),
        (
            "{ x: { data: new Float64Array(24), shape: [1, 24] } }",
            r"1 function 'mlp', parameter 'x' .*: expected dtype f32, got f64",
        ),
        ("{ x: f(1, 24), z: 1 }", r"0 function 'mlp': no parameter 'z' in mlp\(x: Tensor"),
        ("{}", r"0 function 'mlp': no argument for 'x': mlp\(x: Tensor"),
        ("3", r"1 function 'mlp': expected an object with the arguments by name, got Number"),
        (
            "{ x: { data: new Float32Array(3), shape: [1, 24] } }",
            r"3 function 'mlp', .*shape \(1, 24\) has 24 elements, but data has 3",
        ),
        (
            "{ x: { data: new Float32Array(0), shape: [-1, 24] } }",
            r"14 function 'mlp', .*dimension 0 is negative: -1",
        ),
        ("{ x: f(1001, 24) }", r"9 function 'mlp': the program assumes n <= 1000.* n = 1001"),
    ],
)
def test_invalid_arguments_are_named(page, inputs, message):
    script = f"""() => {{
        const f = (...shape) =>
            ({{ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape }});
        return model.mlp({inputs});
    }}"""
    text = refusal(page, script)
    assert re.match(f"ModelError {message}", text), text


def test_aliases_are_named(page):
    text = refusal(
        page,
        """() => {
            const data = new Uint8Array(4);
            return model.accumulate({ x: { data, shape: [4] }, total: { data, shape: [4] } });
        }""",
    )
    assert re.match(r"ModelError 8 .*'total' \(inout\) shares memory with 'x'", text), text
    text = refusal(
        page,
        """() => {
            const x = model.upload("u8", { data: new Uint8Array(4), shape: [4] });
            return model.accumulate({ x, total: x });
        }""",
    )
    assert re.match(r"ModelError 8 .*'total' \(inout\) shares memory with 'x'", text), text


def test_failed_checks_are_named(page):
    x, at = np.arange(5, dtype=np.float32), np.array([0, 4, 2])
    (got,) = page.run(CALL, "gather", given(x=x, at=at))
    assert got["data"] == [0, 4, 2]
    for bad in (5, -1, 2**40):
        inputs = given(x=x, at=np.array([0, bad, 2]))
        text = refusal(page, "(inputs) => model.gather(arrays(inputs))", inputs)
        assert re.match(rf"ModelError 13 function 'gather', kernel 'gather': .*{bad}\b", text), text
    (got,) = page.run(CALL, "gather", given(x=x, at=at))
    assert got["data"] == [0, 4, 2]


def test_a_state_is_refused_after_a_failed_check(page):
    script = """async (url) => {
        const model = await small.load(url);
        const x = { data: Float32Array.of(5, 6, 7), shape: [3] };
        const at = (...data) => ({ data: BigInt64Array.from(data, BigInt), shape: [2] });
        const state = model.newState({});
        await model.keep({ x, at: at(1, 2) }, state);
        const refusals = [
            await refusal(() => model.keep({ x, at: at(1, 3) }, state)),
            await refusal(() => model.keep({ x, at: at(1, 2) }, state)),
        ];
        state.reset();
        await model.keep({ x, at: at(0, 2) }, state);
        const [last] = await lists(await state.get("last"));
        model.close();
        return [refusals, last.data];
    }"""
    refusals, last = page.run(script, f"{ORIGIN}/small")
    assert re.match(r"ModelError 13 function 'keep', kernel '\w+': .*\b3\b", refusals[0]), refusals
    assert re.match(r"ModelError 20 function 'keep': an earlier call failed", refusals[1]), refusals
    assert last == [5, 7]


def test_concurrent_calls_run_one_after_another(page):
    script = """async () => {
        const x = (value) => ({ data: new Float32Array(3).fill(value), shape: [1, 3] });
        const all = [1, 2, 3].map((value) => model.sums({ x: x(value), y: x(1) }));
        const results = await Promise.all(all);
        return (await lists(results.map(([z]) => z))).map(({ data }) => data[0]);
    }"""
    assert page.run(script) == [2, 3, 4]


LIMITED = """async (url, limits) => {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const { maxBufferSize, maxStorageBufferBindingSize } = device.limits;
    Object.defineProperty(device, "limits", {
        value: { maxBufferSize, maxStorageBufferBindingSize, ...limits },
    });
    const limited = await small.load(url, { device });
    const x = (n) => ({ data: new Float32Array(3 * n).fill(1), shape: [n, 3] });
    const text = await refusal(() => limited.main({ x: x(500), y: x(500) }));
    const [fits] = await lists(await limited.main({ x: x(1), y: x(1) }));
    limited.close();
    return [text, fits.data];
}"""


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"maxStorageBufferBindingSize": 4096},
            r"ModelError 11 function 'main': .* kernel '\w+' has 6000 bytes; .* access 4096 bytes",
        ),
        ({"maxBufferSize": 4864}, r"ModelError 12 .*6000 bytes"),
    ],
)
def test_sizes_above_a_limit_are_refused(page, limits, message):
    text, data = page.run(LIMITED, f"{ORIGIN}/small", limits)
    assert re.match(message, text), text
    assert data == [2, 4, 6]


def test_a_lost_device_is_named_and_the_next_call_works(page):
    script = """async (url) => {
        const own = await small.load(url);
        const x = { data: Float32Array.of(1, 2, 3), shape: [1, 3] };
        const state = own.newState({});
        const tensor = own.upload("f32", x);
        const running = own.main({ x, y: x });
        running.catch(() => {});
        await null;
        own.device.destroy();
        const lost = await refusal(() => running);
        const [z] = await lists(await own.main({ x, y: x }));
        const refusals = [
            await refusal(() => own.count({}, state)),
            await refusal(() => state.get("total")),
            await refusal(() => own.main({ x: tensor, y: x })),
            await refusal(() => tensor.read()),
        ];
        await own.count();
        const [total] = await lists(await own.state.get("total"));
        own.close();
        return [lost, z.data, refusals, total.data, await refusal(() => own.main({ x, y: x }))];
    }"""
    lost, data, refusals, total, closed = page.run(script, f"{ORIGIN}/small")
    assert lost.startswith("DeviceLostError 0 the device was lost (destroyed"), lost
    assert data == [2, 8, 18]
    for text in refusals:
        assert re.match(r"DeviceLostError 0 .*was on a device that was lost", text), text
    assert total == [1, 1]
    assert closed == "ModelError 14 the model is closed"


ALTERED = """async (url, file, from, to) => {
    const known = globalThis.fetch;
    globalThis.fetch = async (...given) => {
        const response = await known(...given);
        if (!String(given[0]).includes(file)) return response;
        const bytes = new Uint8Array(await response.arrayBuffer());
        if (to < 0) return new Response(bytes.slice(0, from));
        bytes[from < 0 ? bytes.length + from : from] ^= to;
        return new Response(bytes);
    };
    const text = await refusal(() => small.load(url));
    globalThis.fetch = known;
    return text;
}"""


@pytest.mark.parametrize(
    ("file", "at", "by", "message"),
    [
        ("safetensors", -1, 1, r"ModelError 16 the sha256 of the weights is not that of the expo"),
        ("safetensors", 20, 1, r"ModelError 16 the header of the weights is not that of the exp"),
        ("safetensors", 99, -1, r"ModelError 16 expected weights of \d+ bytes, got 99 bytes"),
        ("wasm", 0, 1, r"ModelError 0 cannot instantiate the module: "),
        (
            "wgsl",
            30,
            -1,
            r"ModelError 0 small\.wgsl has no shader|ShaderError 0 the browser rejects",
        ),
    ],
)
def test_altered_files_are_refused(page, file, at, by, message):
    text = page.run(ALTERED, f"{ORIGIN}/small", file, at, by)
    assert re.match(message, text), text


def test_a_missing_file_is_refused(page):
    text = refusal(page, "() => small.load('http://localhost/none/')")
    assert re.match(r"ModelError 0 cannot fetch http://localhost/none/small\.\w+: status 404", text)


WITHOUT = """async (url) => {
    const found = await import(`${url}small.mjs`);
    try {
        await found.load();
        return "nothing";
    } catch (error) {
        return `${error.name} ${error.reason}: ${error.message}`;
    }
}"""


def test_a_page_without_a_secure_context_is_named(chromium, small):
    with opened(chromium, url="http://models.test") as page:
        page.serve("small", small)
        text = page.run(WITHOUT, "http://models.test/small/")
    assert re.match(
        r"DeviceUnavailableError insecure-context: .*http://models\.test is not one.*https", text
    ), text


def test_a_browser_with_webgpu_disabled_is_named(chromium, small):
    options = ["--no-sandbox", "--disable-features=WebGPU", "--disable-blink-features=WebGPU"]
    with opened(chromium, options=options) as page:
        text = page.run(WITHOUT, page.serve("small", small))
    assert re.match(r"DeviceUnavailableError (disabled|no-adapter): ", text), text


def test_missing_features_and_adapters_are_named(page):
    script = """async () => {
        const found = [];
        const real = navigator.gpu;
        const replaced = (value) =>
            Object.defineProperty(navigator, "gpu", { value, configurable: true });
        const agent = (value) =>
            Object.defineProperty(navigator, "userAgent", { value, configurable: true });
        const attempt = async () => {
            try { await small.load("http://localhost/small"); } catch (error) {
                found.push(`${error.name} ${error.reason}: ${error.message}`);
            }
        };
        replaced({ requestAdapter: async () => null });
        await attempt();
        replaced(undefined);
        await attempt();
        agent("Mozilla/5.0 Firefox/100.0");
        await attempt();
        delete navigator.gpu;
        delete navigator.userAgent;
        return [found, navigator.gpu === real];
    }"""
    found, restored = page.run(script)
    assert restored
    for text, reason in zip(found, ("no-adapter", "disabled", "no-webgpu"), strict=True):
        assert text.startswith(f"DeviceUnavailableError {reason}: "), text


def test_types_are_accepted_by_the_compiler(directory, root, tmp_path):
    folder = tmp_path / "types"
    shutil.copytree(directory, folder)
    (folder / "use.mts").write_text(USE, encoding="utf-8")
    wrong = USE.replace("new Float32Array(24)", "new Float64Array(24)")
    (folder / "wrong.mts").write_text(wrong, encoding="utf-8")
    compiler = root / "extensions" / "node_modules" / ".bin" / "tsc"
    flags = ["--strict", "--noEmit", "--target", "es2022", "--module", "nodenext"]
    command = [str(compiler), *flags]
    done = subprocess.run(
        [*command, str(folder / "use.mts")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [*command, str(folder / "wrong.mts")], capture_output=True, text=True, check=False
    )
    assert "Float64Array" in done.stdout
    text = (directory / "net.d.mts").read_text(encoding="utf-8")
    assert "Tensor((n, 24), f32)" in text
    assert "The program assumes n <= 1000" in text


USE = """
import { load, ModelError, type Model } from "./net.mjs";
const model: Model = await load("https://host/net/", { onProgress: (p) => p.loaded / p.total });
const y = await model.mlp({ x: { data: new Float32Array(24), shape: [1, 24] } });
const data: Float32Array = await y.read();
const [z, total] = await model.sums({ x: y, y });
const state = model.newState({ n: 4 });
const counted = await model.count({ x: z }, state);
const seen: Float32Array = (await state.get("seen")).data;
state.set("total", 1);
const at = model.upload("i64", { data: BigInt64Array.of(1n), shape: [1] });
const refused = (e: unknown) => (e instanceof ModelError ? e.code.toFixed() : "other");
await model.gather({ x: total, at }).catch(refused);
model.close();
export { data, counted, seen };
"""

CONDITION = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], c: Tensor[(), bool]):
    if c:
        p = add(x, 1.0)
        y: Tensor[(n,), f32] = p
    else:
        q = multiply(x, 2.0)
        y = q
    return y
"""


def test_programs_that_read_tensors_on_the_host_are_refused(tmp_path):
    with pytest.raises(ExportError, match=r"'main' reads an element of a tensor on the host"):
        tw.export(tw.parse(CONDITION), tmp_path / "made", target="webgpu", kind="web")
    assert not (tmp_path / "made").exists()


def test_targets_and_kinds_must_fit(program, tmp_path):
    with pytest.raises(ExportError, match=r"kind 'web' requires target 'webgpu', got .*'cpu'"):
        tw.export(program, tmp_path / "made", target="cpu", kind="web")
    with pytest.raises(ExportError, match=r"requires a CPU target") as caught:
        tw.export(program, tmp_path / "made", target="webgpu")
    assert 'kind="web"' in str(caught.value)


def test_reserved_names_are_refused(tmp_path):
    text = SMALL.replace("def count", "def upload")
    with pytest.raises(ExportError, match=r"function name 'upload' is reserved"):
        tw.export(tw.parse(text, constants=_small().constants), tmp_path / "made", kind="web")
