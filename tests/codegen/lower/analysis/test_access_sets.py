"""Sets of memory accesses, and their classes."""

from __future__ import annotations

from dataclasses import replace

from tilewright.codegen.lower.analysis.access_sets import AccessClasses, AccessSet
from tilewright.codegen.lower.analysis.memory_effects import MemoryAccess
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.nodes import NO_SOURCE, Reg
from tilewright.ir.thread.types import GLOBAL_POINTER, SHARED_POINTER

T = var("t", lower=0, upper=15)
S, G = Reg("s", SHARED_POINTER), Reg("g", GLOBAL_POINTER)


def access(offset, *, base=S, write=True):
    term = None if offset is None else as_expr(offset)
    return MemoryAccess(base, write, term, 4, NO_SOURCE)


def test_accesses_are_kept_in_order_and_once():
    first, second, other = access(T * 4), access(T * 4 + 64), access(T * 4, write=False)
    found = AccessSet(AccessClasses(), [first, second, replace(first), other, access(None)])
    assert [(a.offset, a.write) for a in found] == [
        (T * 4, True), (T * 4 + 64, True), (T * 4, False), (None, True),
    ]  # fmt: skip


def test_classes_are_all_properties_but_the_constant():
    classes = AccessClasses()
    one = access(T * 4)
    assert classes.of(one) == classes.of(replace(one))
    assert classes.of(access(T * 4 + 64)) == (classes.of(one)[0], 64)
    changes = {
        "write": False, "atomic": True, "size": 8, "loops": frozenset({T}), "base": G,
        "fixed": {T: as_expr(0)}, "offset": T * 8,
    }  # fmt: skip
    others = {name: classes.of(replace(one, **{name: new}))[0] for name, new in changes.items()}
    assert len({classes.of(one)[0], *others.values()}) == 1 + len(changes), others


def test_pairs_are_of_one_memory():
    classes = AccessClasses()
    ours = AccessSet(classes, [access(T * 4), access(T * 4 + 64), access(T * 4, base=G)])
    theirs = AccessSet(classes, [access(T * 4 + 8, write=False), access(T * 2)])
    pairs = [(list(a), list(b)) for _, a, _, b in ours.pairs_of_classes(theirs)]
    assert pairs == [([0, 64], [8]), ([0, 64], [0])]
