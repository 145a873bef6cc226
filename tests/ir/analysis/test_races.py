"""Races: hand-written loop kinds whose iterations depend on each other."""

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.analysis.races import races
from tilewright.ir.analysis.tree import tree_of
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import IllFormedProgramError, violations
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.loops.bind import Bind

SCAN = """
@prim_func(scheduled=True)
def f(x: Buffer[(8,), f32], y: InOut[(9,), f32]):
    for i in KIND:
        with block("x"):
            vi = VARIABLE
            y[vi + 1] = y[vi] + x[vi]
"""

SHIFT = """
@prim_func(scheduled=True)
def f(x: Buffer[(9,), f32], y: Out[(8,), f32]):
    s = alloc((9,), f32, scope="SCOPE")
    for i in thread(8, "AXIS"):
        for a in range(9):
            with block("fill"):
                vi, va = spatial(i), spatial(a)
                s[FILLED] = x[va]
        with block("use"):
            vt = spatial(i)
            s[vt] = s[vt + 1]
            y[vt] = s[vt]
"""

SYMBOLIC = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[(n,), f32], y: InOut[(n + STEP,), f32]):
    for i in parallel(n):
        with block("x"):
            vi = spatial(i)
            y[vi + STEP] = y[vi] + x[vi]
"""

DISTANT = """
@prim_func(scheduled=True)
def f(x: Buffer[(10000,), f32], y: InOut[(10007,), f32]):
    for i in parallel(10000):
        with block("x"):
            vi = spatial(i)
            y[INDEX] = x[vi]
"""

SUM = """
@prim_func(scheduled=True)
def f(x: Buffer[(8,), f32], y: InOut[(1,), f32]):
    for i in KIND:
        with block("x"):
            vi = reduce(i)
            y[0] += x[vi]
"""

TILES = """
@prim_func(scheduled=True)
def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    for i in parallel(4):
        for a in range(10):
            with block("x"):
                vi = spatial(32, i * 8 + a)
                guard(a < LIMIT and i * 8 + a < 32)
                y[vi] = x[vi]
"""

PRIVATE = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    t = alloc((8,), f32)
    for i in parallel(n):
        for a in range(8):
            with block("fill"):
                vi, va = spatial(i), spatial(a)
                t[va] = x[vi, va]
        for b in range(8):
            with block("use"):
                wi, wb = spatial(i), spatial(b)
                y[wi, wb] = t[wb] + t[7 - wb]
"""

SCATTER = """
@prim_func(scheduled=True)
def f(at: Buffer[(64,), i32], x: Buffer[(64,), i32], y: InOut[(8,), i32]):
    for i in KIND:
        with block("x"):
            vi = spatial(i)
            with checked(at[vi], 0, 8) as p:
                y[p] += x[vi]
"""


def reasons(text):
    function = parse(text, check=False).prims[0]
    tree = tree_of(function)
    return [race.reason for loop in tree.loops.values() for race in races(tree, loop)]


@pytest.mark.parametrize(
    "kind", ["parallel(8)", "vectorized(8)", 'thread(8, "threadIdx.x")', 'thread(8, "blockIdx.x")']
)
def test_an_iteration_that_reads_an_element_of_another_iteration(kind):
    text = SCAN.replace("KIND", kind)
    (reason,) = reasons(text.replace("VARIABLE", "ordered(8, i)"))
    assert reason.startswith("it binds an ordered iteration variable of block 'x': ")
    assert reason.endswith("reads y[vi] and writes y[vi + 1]")
    (reason,) = reasons(text.replace("VARIABLE", "spatial(i)"))
    assert reason.startswith("iteration 1 reads y[1], which iteration 0 writes")
    assert reasons(text.replace(kind, "range(8)").replace("VARIABLE", "ordered(8, i)")) == []


def test_every_door_rejects_a_race():
    text = SCAN.replace("KIND", "parallel(8)").replace("VARIABLE", "ordered(8, i)")
    unchecked = parse(text, check=False)
    (violation,) = violations(unchecked)
    assert violation.rule.number == "L23"
    assert "loop 'i' is parallel, but it binds an ordered" in violation.message
    for door in (lambda: parse(text), lambda: Schedule(unchecked), lambda: compile(unchecked)):
        with pytest.raises(IllFormedProgramError, match="ordered iteration variable"):
            door()


def test_threads_that_share_elements_without_a_barrier():
    shared = SHIFT.replace("AXIS", "threadIdx.x").replace("FILLED", "va")
    found = reasons(shared.replace("SCOPE", "shared"))
    assert any("s[" in reason for reason in found), found
    assert reasons(shared.replace("SCOPE", "local")) == []
    blocks = SHIFT.replace("AXIS", "blockIdx.x").replace("FILLED", "va")
    assert reasons(blocks.replace("SCOPE", "shared")) == []


@pytest.mark.parametrize(
    ("step", "count"), [("0", 0), ("1", 1), ("3", 1), ("200", 1), ("100000", 1)]
)
def test_a_distance_between_iterations(step, count):
    assert len(reasons(SYMBOLIC.replace("STEP", step))) == count


@pytest.mark.parametrize(
    ("index", "common"),
    [
        ("vi * 6 % 16", "iteration 8 writes y[0], which iteration 0 writes, too"),
        ("vi * 64 % 4096", "iteration 64 writes y[0], which iteration 0 writes, too"),
        ("vi % 5000", "iteration 5000 writes y[0], which iteration 0 writes, too"),
        ("vi * 7 % 10007", None),
        ("min(vi, 700)", "iteration 701 writes y[700], which iteration 700 writes, too"),
    ],
)
def test_distant_iterations_that_write_an_element(index, common):
    found = reasons(DISTANT.replace("INDEX", index))
    assert [reason.split(";")[0] for reason in found] == ([common] if common else [])


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("parallel(8)", 1),
        ("vectorized(8)", 0),
        ('thread(8, "threadIdx.x")', 0),
        ("parallel(1)", 0),
        ("range(8)", 0),
        ("unrolled(8)", 0),
    ],
)
def test_reductions_that_lanes_and_threads_combine(kind, count):
    assert len(reasons(SUM.replace("KIND", kind))) == count


def test_a_reduction_in_a_loop_without_iterations_is_combined_nowhere():
    """A part of a loop that never runs may contain a copy of the init."""
    sch = Schedule(
        parse("""
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(), f32]):
    for i in range(64):
        with block("sum"):
            vi = reduce(i)
            with init(): y[()] = 0.0
            y[()] += x[vi]
""")
    )
    sch.bind("i", "threadIdx.x")
    sch.add_unit_loop("sum")
    sch.loop_partition("unit", 0)
    assert violations(sch.module) == ()


def test_a_block_around_a_loop_without_iterations_accesses_nothing():
    sch = Schedule(
        parse("""
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, 8), i32], y: InOut[(n,), i32]):
    for k in thread(8, "threadIdx.x"):
        for i in thread(n, "blockIdx.x"):
            with block("row"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
        for j in range(0):
            for i_1 in thread(n, "blockIdx.x"):
                with block("rest"):
                    vi_1, vk_1 = spatial(i_1), reduce(8, k + j * 8 + 8)
                    y[vi_1] += x[vi_1, vk_1]
""")
    )
    sch.blockize("j")
    assert violations(sch.module) == ()


def test_tiles_are_disjoint_although_no_index_shows_it():
    assert reasons(TILES.replace("LIMIT", "8")) == []
    (reason,) = reasons(TILES.replace("LIMIT", "9"))
    assert "writes y[8], which iteration 0 writes, too" in reason


def test_private_temporaries_have_no_races():
    assert reasons(PRIVATE) == []
    module = parse(PRIVATE)
    assert parse(to_text(module)).prims


def test_updates_of_threads_are_atomic():
    assert reasons(SCATTER.replace("KIND", 'thread(64, "threadIdx.x")')) == []


LANES = """
@prim_func(scheduled=True)
def f(x: Buffer[(8, 16), i32], y: InOut[(8,), i32], z: Out[(8, 16), i32]):
    for i in SPATIAL:
        for k in KIND:
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                y[vi] += x[vi, vk]
            with block("other"):
                wi, wk = spatial(i), OTHER
"""
"""A reduction with another block in the loop over lanes or threads."""
PART = "                y[wi] += x[wi, 15 - wk] * 2\n"
MAXIMUM = "                y[wi] = max(y[wi], x[wi, wk])\n"
READ = "                z[wi, wk] = y[wi]\n"
MIXED = """
@prim_func(scheduled=True)
def f(x: Buffer[(8, 16), i32], y: InOut[(8,), i32]):
    for i in SPATIAL:
        for k in KIND:
            with block("sum"):
                vi, vk = spatial(8, k // 2), reduce(2, k % 2)
                y[vi] += x[vi, vk]
"""
"""Groups of two lanes or threads update one element each."""
BELOW = LANES.split('            with block("other")', maxsplit=1)[0]


def with_init(text):
    """Return a program in which the block of the sum has an init."""
    init = "with init(): y[vi] = 3\n                y[vi] +="
    return text.replace("y[vi] +=", init).replace("y: InOut", "y: Out")


COMBINED = {
    "alone": BELOW.replace(", z: Out[(8, 16), i32]", ""),
    "two parts": LANES.replace(", z: Out[(8, 16), i32]", "").replace("OTHER", "reduce(k)") + PART,
}
NOT_COMBINED = {
    "another operator": COMBINED["two parts"].replace(PART, MAXIMUM),
    "read": LANES.replace("OTHER", "spatial(k)") + READ,
    "mixed": MIXED.replace("SPATIAL", "range(1)"),
    "order": COMBINED["alone"].replace("y[vi] += x[vi, vk]", "y[vi] = x[vi, vk] - y[vi]"),
}
KINDS = ["vectorized(16)", 'thread(16, "threadIdx.x")']


@pytest.mark.parametrize("init", [False, True], ids=["in place", "init"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", COMBINED.values(), ids=COMBINED)
def test_lanes_and_threads_combine_all_parts_of_a_reduction(text, kind, init):
    """The results are those of the interpreter, which runs the iterations in order."""
    text = with_init(text) if init else text
    lanes = kind.startswith("vectorized")
    text = text.replace("KIND", kind).replace("SPATIAL", 'thread(8, "threadIdx.y")')
    text = text if not lanes else text.replace('thread(8, "threadIdx.y")', "range(8)")
    assert reasons(text) == []
    run = compile(parse(text), target="cpu" if lanes else "simt")
    x = np.random.default_rng(0).integers(-9, 9, (8, 16)).astype(np.int32)
    y = np.arange(8, dtype=np.int32)
    expected = y.copy()
    run_prim(parse(text).prims[0], [x, expected], {})
    found = run(x) if init else run(x, y)
    np.testing.assert_array_equal(y if found is None else found, expected)


@pytest.mark.parametrize("init", [False, True], ids=["in place", "init"])
@pytest.mark.parametrize("kind", [*KINDS, 'thread(16, "vthread")'])
@pytest.mark.parametrize("text", NOT_COMBINED.values(), ids=NOT_COMBINED)
def test_updates_that_lanes_and_threads_do_not_combine(text, kind, init):
    """Threads apply updates in place of different elements, or of one element, atomically."""
    text = with_init(text) if init else text
    text = text.replace("KIND", kind).replace("SPATIAL", "range(8)")
    atomic = kind.endswith('"threadIdx.x")') and not init and "k // 2" in text
    assert bool(reasons(text)) is not atomic


def test_an_init_after_another_update_of_the_element():
    """The partial sums of the lanes would include the update before the init."""
    text = with_init(COMBINED["two parts"]).replace("KIND", "vectorized(16)")
    text = text.replace("SPATIAL", "range(8)")
    init = "with init(): y[vi] = 3\n                "
    text = text.replace(init, "").replace(PART, f"{' ' * 16}{init.replace('vi', 'wi')}{PART[16:]}")
    assert reasons(text)


@pytest.mark.parametrize("kind", ["parallel(64)", "vectorized(64)", 'thread(64, "vthread")'])
def test_updates_at_loaded_indices_race_where_they_are_not_atomic(kind):
    """Elements of two iterations are equal for some data."""
    (reason,) = reasons(SCATTER.replace("KIND", kind))
    assert reason.startswith("iterations 0 and 1 write y at loaded indices")
    own = SCATTER.replace("InOut[(8,)", "InOut[(64, 8)").replace("y[p]", "y[vi, p]")
    assert reasons(own.replace("KIND", kind)) == []


RAGGED = """
n, m = symbols("n m", lower=1)

@prim_func
def f(p: Buffer[(n + 1,), i32], x: Buffer[(n,), f32], y: InOut[(m,), f32]):
    for i in {segments}:
        with checked(p[i], 0, m + 1) as lo:
            with checked(p[i + 1], lo, m + 1) as hi:
                for j in {elements}:
                    with block("y"):
                        vi, vl, vj = spatial(n, i), spatial(m + 1, lo), spatial(m, j)
                        y[vl + vj] = x[vi]
"""


def test_segments_race_because_their_bounds_need_not_increase():
    """With ``p = 0 3 1 4``, the segments 0 and 2 contain the element 2, and 1 is empty."""
    text = RAGGED.format(segments="parallel(n)", elements="range(hi - lo)")
    text = text.replace("p[i + 1], lo,", "p[i + 1], 0,")
    with pytest.raises(IllFormedProgramError) as caught:
        parse(text)
    message = str(caught.value)
    assert "iterations 0 and 1 write y at loaded indices, which are equal for some data" in message
    assert "a loop inside of the loaded integers" in message
    assert "a loop over the elements of y that loads which element to read" in message


def test_segments_whose_bounds_are_checked_to_increase_do_not_race():
    """A call with bounds that decrease raises an error."""
    parse(RAGGED.format(segments="parallel(n)", elements="range(hi - lo)"))


def test_concurrent_elements_of_one_segment_or_of_all():
    """The elements of one segment, and a loop over all elements that loads the segment."""
    parse(RAGGED.format(segments="range(n)", elements="parallel(hi - lo)"))
    parse("""
n, m = symbols("n m", lower=1)

@prim_func
def f(s: Buffer[(m,), i32], x: Buffer[(n,), f32], y: InOut[(m,), f32]):
    for e in parallel(m):
        with block("y"):
            ve = spatial(e)
            with checked(s[ve], 0, n) as p:
                y[ve] = x[p]
""")


def test_threads_have_their_own_elements_of_registers_in_different_loops():
    text = """
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    t = alloc((1,), f32, scope="local")
    for a in thread(64, "threadIdx.x"):
        with block("t"):
            va = spatial(a)
            t[0] = x[va]
    for b in thread(64, "threadIdx.x"):
        with block("y"):
            vb = spatial(b)
            y[vb] = t[0] * 2.0
"""
    x = np.arange(64, dtype="f")
    np.testing.assert_array_equal(compile(parse(text), "simt")(x), x * 2)


COUNTED = """
n, d, l = symbols("n d l", lower=1)

@prim_func
def f(off: Buffer[(n,), i32], x: Buffer[(l,), f32], y: InOut[(n, d), f32]):
    for i_d_0 in parallel((n * d + 15) // 16):
        for i_d_1 in range(16):
            if i_d_0 * 16 + i_d_1 < n * d:
                with checked(off[(i_d_0 * 16 + i_d_1) // d], 0, l + 1) as hi:
                    for j in range(hi):
                        with block("y"):
                            vi = spatial(n, (i_d_0 * 16 + i_d_1) // d)
                            vd = spatial(d, (i_d_0 * 16 + i_d_1) % d)
                            vj = reduce(l, j)
                            y[AT] += x[vj]
"""


def test_only_indices_of_loaded_integers_may_be_any_element():
    assert reasons(COUNTED.replace("AT", "vi, vd")) == []
    (reason,) = reasons(COUNTED.replace("AT", "0, 0").replace("reduce(l, j)", "ordered(l, j)"))
    assert reason.startswith("iteration 1 writes y[0, 0], which iteration 0 writes, too")


ROWS_OF_A_CACHE = """
n = symbols("n", lower=0)
k = symbols("k", lower=1)

@prim_func
def f(pos: Buffer[(n,), i32], new: Buffer[(n, k), f32], cache: InOut[(n + 9, k), f32]):
    for i in range(n):
        for j in vectorized(32):
            for a in range(ceildiv(k, 512)):
                for b in range(2):
                    with block("w"):
                        vi, vj = spatial(i), spatial(k, a * 512 + b * 32 + j)
                        guard(a * 512 + b * 32 + j < k)
                        with checked(pos[vi], 0, n + 9) as p:
                            cache[p, vj] = new[vi, vj]
                for c in range(14):
                    with block("rest"):
                        wi, wj = spatial(i), spatial(k, a * 512 + c * 32 + j + 64)
                        guard(a * 512 + c * 32 + j + 65 <= k)
                        with checked(pos[wi], 0, n + 9) as q:
                            cache[q, wj] = new[wi, wj]
"""


def test_elements_with_one_loaded_index_differ_in_the_others():
    tree = tree_of(parse(ROWS_OF_A_CACHE, check=False).prim("f"))
    loop = next(x for x in tree.loops.values() if x.kind == "vectorized")
    assert not [*races(tree, loop)]
    text = ROWS_OF_A_CACHE.replace("cache[p, vj]", "cache[p, vj // 64]")
    tree = tree_of(parse(text, check=False).prim("f"))
    loop = next(x for x in tree.loops.values() if x.kind == "vectorized")
    assert [*races(tree, loop)]


@pytest.mark.parametrize(("dtype", "legal"), [("i4", False), ("i8", True)])
def test_updates_of_elements_that_share_a_byte_are_not_atomic(dtype, legal):
    text = f"""
n = symbols("n", lower=0)

@prim_func
def f(
    x: Buffer[(n,), {dtype}],
    p: Buffer[(n,), i32],
    y: InOut[(n,), {dtype}],
    z: InOut[(n,), {dtype}],
):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] += x[vi]
    for j in range(n):
        with block("z"):
            vj = spatial(j)
            with checked(p[vj], 0, n) as q:
                z[q] += x[vj]
"""
    sch = Schedule(parse(text))
    for block in ("y", "z"):
        loop = sch.split(sch.get_loops(block)[0], (None, 32))[1]
        assert (sch.check(Bind(loop, "threadIdx.x")) == ()) is legal
    exe = compile(parse(text), "simt")
    for n in (0, 1, 2, 7, 33):
        x = np.ones(n, sch.module.prim("f").params[0].buffer.dtype.numpy)
        p = np.arange(n, dtype=np.int32) // 2
        y, z = np.zeros_like(x), np.zeros_like(x)
        exe(x, p, y, z)
        assert y.tolist() == x.tolist()
        assert z.astype(int).tolist() == np.bincount(p, minlength=n).tolist()


GUARDED = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(4,), f32]):
    for i in parallel(4):
        for a in range(256):
            for b in range(64):
                with block("y"):
                    vi, va, vb = spatial(i), spatial(a), spatial(b)
                    guard(i * 16384 + a * 64 + b < n)
                    y[vi * 16384 + va * 64 + vb] = x[vi * 16384 + va * 64 + vb]
        with block("z"):
            vz = spatial(i)
            z[vz // 2] = 1.0
"""


def test_a_race_after_a_nest_whose_guards_exclude_most_iterations():
    function = parse(GUARDED, check=False).prims[0]
    tree = tree_of(function)
    (race,) = races(tree, next(x for x in tree.loops.values() if x.var.name == "i"))
    assert race.reason.startswith("iteration 1 writes z[0], which iteration 0 writes")


PARTS = """
@prim_func(scheduled=True)
def f(x: Buffer[(40,), i32], y: InOut[(), i32], z: InOut[(), i32]):
    for i in KIND:
        for j in range(2):
            with block("first"):
                vk = reduce(40, j * 8 + i)
                @reducer(identity=(i32(0), i32(0)))
                def both(a: i32, b: i32, c: i32, d: i32):
                    return a + c, b + d
                y[()], z[()] = both(x[vk], x[vk] * 2)
        for j_1 in range(3):
            with block("rest"):
                wk = reduce(40, j_1 * 8 + i + 16)
                @reducer(identity=(i32(0), i32(0)))
                def both(a: i32, b: i32, c: i32, d: i32):
                    return a + c, OPERATION
                y[()], z[()] = both(x[wk], x[wk] * 2)
"""


@pytest.mark.parametrize("kind", ["vectorized(8)", 'thread(8, "threadIdx.x")'])
def test_blocks_of_one_loop_declare_equal_reducers(kind):
    """Each block of a parsed program has its own values, which do not decide."""
    text = PARTS.replace("KIND", kind)
    same = parse(text.replace("OPERATION", "b + d"))
    assert to_text(parse(to_text(same))) == to_text(same)
    with pytest.raises(IllFormedProgramError, match="binds a reduction of block 'first'"):
        parse(text.replace("OPERATION", "max(b, d)"))
    y, z = np.array(3, np.int32), np.array(4, np.int32)
    compile(same, "simt" if "thread" in kind else "cpu")(np.arange(40, dtype=np.int32), y, z)
    assert (int(y), int(z)) == (783, 1564)
