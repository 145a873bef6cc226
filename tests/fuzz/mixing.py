"""Random changes of programs: bound values, narrow and complex elements, more results, reducers.

A change keeps the loops, domains and accesses of a program, so that each construct occurs in all
kinds of programs. It may change the results: a changed program is compared with itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.errors import TilewrightError
from tilewright.ir.verify import violations

from tests.fuzz.program import highest, lowest, zero

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from tests.fuzz.program import Program

SHARE = 0.5
"""The share of the programs that are changed."""

RARE = 0.25
"""The share where a walk aims at a composite step, which schedules programs of a given form."""

PACKED = ("i4", "u4", "i2", "u2")
NARROW_FLOATS = ("f8_e4m3", "f8_e5m2")
WIDENED = ("i8", "i32", "i64", "f16", "f32", "f64")
"""The dtypes whose elements may be stored as narrow ones."""

PAIRED = {"f32": "c64", "f64": "c128"}
"""The dtypes of pairs of floats."""

INTEGRAL = ("i8", "u8", "i32", "i64")
PARAMETER = re.compile(r"(\w+): (Buffer|InOut|Out)\[\((.*?)\), (\w+)\]")
TEMPORARY = re.compile(r"^    (\w+) = alloc\(\((.*)\), (\w+)\)$", re.MULTILINE)
STORE = re.compile(r"^( *)(\w+)\[(.*)\] (\+?=) (.*)$")


@dataclass(frozen=True)
class Declared:
    """A buffer of a program: its kind of parameter, its dimensions, and its dtype."""

    name: str
    kind: str
    dims: str
    dtype: str


def declared(text: str) -> dict[str, Declared]:
    """Return the buffers whose declarations can be changed."""
    found = [Declared(*m.group(1, 2, 3, 4)) for m in PARAMETER.finditer(text)]
    found += [Declared(m[1], "alloc", m[2], m[3]) for m in TEMPORARY.finditer(text)]
    return {d.name: d for d in found}


@dataclass(frozen=True)
class Stored:
    """A store in a block: its line, the parts of the line, and the range of lines of its block."""

    line: int
    margin: str
    name: str
    place: str
    update: bool
    value: str
    block: int

    @property
    def target(self) -> str:
        """The element."""
        return f"{self.name}[{self.place}]"


def stores(lines: list[str]) -> Iterator[Stored]:
    """Yield the stores in blocks, without those of an init."""
    for k, line in enumerate(lines):
        found = STORE.match(line)
        if not found or any(c in found[3] for c in "[]") or "," in line.split("=")[0].split("]")[1]:
            continue
        above = [j for j in range(k) if _depth(lines[j]) < _depth(line) and _is_head(lines[j])]
        block = next((j for j in reversed(above) if lines[j].strip().startswith("with block")), -1)
        between = lines[block + 1 : k] if block >= 0 else []
        if block >= 0 and all(_depth(b) > _depth(lines[block]) for b in between if b.strip()):
            margin, name, place, sign, value = found.groups()
            yield Stored(k, margin, name, place, sign == "+=", value, block)


def _is_head(line: str) -> bool:
    return line.rstrip().endswith(":")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def loads(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last positions of the accesses of a buffer."""
    for found in re.finditer(rf"\b{name}\[", text):
        depth, end = 1, found.end()
        while depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        yield found.start(), end


def _wrapped(text: str, name: str, form: str) -> str:
    """Replace the loads of a buffer by a form with ``{}`` for the load."""
    for start, end in reversed(list(loads(text, name))):
        text = text[:start] + form.replace("{}", text[start:end]) + text[end:]
    return text


def _fresh(text: str, stem: str) -> str:
    return next(n for n in (f"{stem}{k}" for k in range(99)) if not re.search(rf"\b{n}\b", text))


def bound(rng: random.Random, program: Program) -> str:
    """Bind loads or whole values of stores, sometimes by a chain of names."""
    lines = program.text.split("\n")
    for _ in range(rng.randint(1, 3)):
        found = [s for s in stores(lines) if "where" not in s.value]
        if not found:
            break
        one = rng.choice(found)
        names = [n for n in re.findall(r"(\w+)\[", one.value) if n != one.name]
        parts = [one.value[a:b] for n in names for a, b in loads(one.value, n)]
        if not re.search(rf"\b{one.name}\[", one.value) and rng.random() < 0.3:
            parts = [one.value]
        if not parts:
            break
        part, name = rng.choice(parts), _fresh("\n".join(lines), "q")
        made = [f"{one.margin}{name} = {part}"]
        for _ in range(rng.choice([0, 0, 0, 1, 2, 30])):
            last, name = name, _fresh("\n".join([*lines, *made]), "q")
            made.append(f"{one.margin}{name} = max({last}, {last})")
        sign = "+=" if one.update else "="
        value = one.value.replace(part, name)
        lines[one.line : one.line + 1] = [*made, f"{one.margin}{one.target} {sign} {value}"]
    return "\n".join(lines)


def narrow(rng: random.Random, program: Program) -> str:
    """Store the elements of a buffer in a narrow dtype; loads convert them back."""
    text = program.text
    head = re.search(r"^def .*$", text, re.MULTILINE)
    found = [d for d in declared(text).values()
             if d.dtype in WIDENED and d.name not in program.indices]  # fmt: skip
    if not found or head is None:
        return text
    own = rng.choice(found)
    t, u = own.dtype, rng.choice((*PACKED, *NARROW_FLOATS, "i4"))
    body = text[head.end() :]
    stored = [s for s in _every_store(body) if s[0] == own.name]
    sums = any(update for _, update, _ in stored)
    if sums and (t not in INTEGRAL or u in NARROW_FLOATS):
        return text
    if any(re.search(rf"\b{own.name}\[", value) for _, _, value in stored) and own.kind != "Buffer":
        return text
    if not program.exact and own.kind != "Buffer":
        return text
    lines = body.split("\n")
    for k, line in enumerate(lines):
        start = re.match(rf"^(.*?)\b{own.name}\[[^\]]*\] \+?= ", line)
        if start is not None and not TEMPORARY.match(line):
            value = _wrapped(line[start.end() :], own.name, f"{t}({{}})")
            lines[k] = f"{line[: start.end()]}{u}({value})"
        elif not TEMPORARY.match(line):
            form = f"{t}({{}})"
            if u in ("i4", "u4") and t not in INTEGRAL:
                low = "i4(-3)" if u == "i4" else "u4(0)"
                form = f"{t}(max(min({{}}, {u}(3)), {low}))"
            lines[k] = _wrapped(line, own.name, form)
    return _redeclared(text[: head.end()], lines, own, u)


def paired(rng: random.Random, program: Program) -> str:
    """Store the elements of a buffer of floats as complex numbers, or compute with complex ones."""
    text = program.text
    head = re.search(r"^def .*$", text, re.MULTILINE)
    found = [d for d in declared(text).values() if d.dtype in PAIRED]
    if not found or head is None or not program.exact:
        return text
    own = rng.choice(found)
    t, u = own.dtype, PAIRED[own.dtype]
    if rng.random() < 0.5:
        return re.sub(rf"\b{t}\b", u, text)
    form, part = rng.choice([("{}({})", "real({})"), ("{}({}) * 1j", "imag({})"),
                             ("{}({}) - 2j", "real(conj({}))")])  # fmt: skip
    lines = text[head.end() :].split("\n")
    for k, line in enumerate(lines):
        start = re.match(rf"^(.*?)\b{own.name}\[[^\]]*\] \+?= ", line)
        if start is not None and not TEMPORARY.match(line):
            value = _wrapped(line[start.end() :], own.name, part)
            lines[k] = f"{line[: start.end()]}{form.format(u, value)}"
        elif not TEMPORARY.match(line):
            lines[k] = _wrapped(line, own.name, part)
    return _redeclared(text[: head.end()], lines, own, u)


def _redeclared(head: str, lines: list[str], own: Declared, dtype: str) -> str:
    """Return a program with another dtype of a buffer."""
    if own.kind == "alloc":
        old = re.compile(rf"^(    {own.name} = alloc\(.*, )\w+\)$")
        return head + "\n".join(old.sub(rf"\g<1>{dtype})", line) for line in lines)
    shown = f"{own.name}: {own.kind}[({own.dims}), "
    return head.replace(f"{shown}{own.dtype}]", f"{shown}{dtype}]") + "\n".join(lines)


def _every_store(body: str) -> Iterator[tuple[str, bool, str]]:
    for line in body.split("\n"):
        found = re.match(r"^(?: *|.*with init\(\): )(\w+)\[[^\]]*\] (\+?=) (.*)$", line)
        if found:
            yield found[1], found[2] == "+=", found[3]


def _with_parameter(text: str, name: str, dims: str, dtype: str) -> str:
    shown = f"{name}: InOut[({dims}), {dtype}]"
    return re.sub(r"^(def random\(.*)\):$", rf"\1, {shown}):", text, flags=re.MULTILINE)


def several(rng: random.Random, program: Program) -> str:
    """Add a second store to a block, of the same value or of a shared part of it."""
    text, known = program.text, declared(program.text)
    lines = text.split("\n")
    found = [s for s in stores(lines) if s.name in known and not s.update
             and not re.search(rf"\b{s.name}\[", s.value)]  # fmt: skip
    if not found:
        return text
    one, name = rng.choice(found), _fresh(text, "z")
    own = known[one.name]
    t = rng.choice((own.dtype, own.dtype, "i32", "i4", "f8_e5m2"))
    if not program.exact and t != own.dtype:
        t = own.dtype
    value, shared = one.value, _fresh(text, "q")
    added = [f"{one.margin}{name}[{one.place}] = {t}({value})"]
    first = [lines[one.line]]
    if rng.random() < 0.5:
        first = [f"{one.margin}{shared} = {value}", f"{one.margin}{one.target} = {shared}"]
        added = [f"{one.margin}{name}[{one.place}] = {t}({shared})"]
    both = [*first, *added]
    if rng.random() < 0.4 and len(first) == 1:
        both.reverse()
    lines[one.line : one.line + 1] = both
    return _with_parameter("\n".join(lines), name, own.dims, t)


def reduced(rng: random.Random, program: Program) -> str:
    """Reduce by a reducer of two results in place of a sum or an extreme value."""
    text, known = program.text, declared(program.text)
    lines = text.split("\n")
    found = [(s, *c) for s in stores(lines) if s.name in known and (c := _combined(s))]
    if not found:
        return text
    one, op, value = rng.choice(found)
    own, name = known[one.name], _fresh(text, "p")
    t, place, called = own.dtype, f"{name}[{one.place}]", _fresh(text, "both")
    axes = re.findall(r"\bv?\w+", lines[one.block + 1].split("=")[0])
    of = t
    if op in ("max", "min") and rng.random() < 0.7:
        of = rng.choice(("i32", "i64"))
        start = "2147483647" if of == "i32" else "9223372036854775807"
        call, head = f"arg{op}({value}, {' + '.join(axes)})", []
    else:
        start = {"+": zero(t), "max": lowest(t), "min": highest(t)}[op]
        form = {"+": "{} + {}", "max": "max({}, {})", "min": "min({}, {})"}[op]
        second, more = rng.choice([(form, start), ("min({}, {})", highest(t))])
        results = f"{form.format('a0', 'b0')}, {second.format('a1', 'b1')}"
        head = [
            f"@reducer(identity=({start}, {more}))",
            f"def {called}(a0: {t}, a1: {t}, b0: {t}, b1: {t}):",
            f"    return {results}",
        ]
        if rng.random() < 0.4:
            part = _fresh(text, "d")
            head[2:] = [f"    {part} = {form.format('a0', 'b0')}",
                        f"    return {part}, {second.format('a1', 'b1')}"]  # fmt: skip
        start = more
        other = rng.choice([value, f"-({value})", f"({value}) + {t}(1)"])
        call = f"{called}({value}, {other})"
    margin = " " * (_depth(lines[one.block]) + 4)
    lines[one.line] = f"{one.margin}{one.target}, {place} = {call}"
    init = f"with init(): {one.target} = "
    for k in range(one.block, one.line):
        if lines[k].strip().startswith(init):
            before, after = lines[k].split(init)
            lines[k] = f"{before}with init(): {one.target}, {place} = {after}, {start}"
    at = one.block + 2 + lines[one.block + 2].strip().startswith(("guard", "v"))
    lines[at:at] = [f"{margin}{line}" for line in head]
    return _with_parameter("\n".join(lines), name, own.dims, of)


def _combined(store: Stored) -> tuple[str, str] | None:
    """Return the combiner and the value of a store that reduces."""
    if "(): " in store.margin:
        return None
    own = re.escape(store.target)
    if store.update:
        return None if re.search(rf"\b{store.name}\[", store.value) else ("+", store.value)
    for op, form in (("+", rf"{own} \+ (.*)"), ("max", rf"max\({own}, (.*)\)"),
                     ("min", rf"min\({own}, (.*)\)")):  # fmt: skip
        found = re.fullmatch(form, store.value)
        if found and not re.search(rf"\b{store.name}\[", found[1]):
            return op, found[1]
    return None


def started(rng: random.Random, program: Program) -> str:
    """Start a sum from another element than its identity."""
    return re.sub(r"(with init\(\): .* = \w+)\(0\)$", rf"\1({rng.choice([1, 2, 3])})",
                  program.text, flags=re.MULTILINE)  # fmt: skip


def bits(rng: random.Random, program: Program) -> str:
    """Apply functions of bits and signs to loads."""
    text, lines = program.text, program.text.split("\n")
    known = declared(text)
    found = [(s, n) for s in stores(lines) for n in re.findall(r"(\w+)\[", s.value)
             if n in known and n != s.name and n not in program.indices]  # fmt: skip
    if not found:
        return text
    one, name = rng.choice(found)
    t = known[name].dtype
    bits_of = {"f32": "i32", "f64": "i64", "f16": "u16"}.get(t)
    forms = ["abs({})"]
    if t in INTEGRAL:
        forms = ["popcount({})", "clz({})", "ctz({})", "{} ^ " + f"{t}(5)", "({} & " + f"{t}(7))"]
        forms += [f"reinterpret(reinterpret({{}}, u{t[1:]}) ^ u{t[1:]}(1), {t})"]
    elif bits_of:
        forms = [f"reinterpret(reinterpret({{}}, {bits_of}), {t})", "copysign({}, -{})"]
    sign = "+=" if one.update else "="
    value = _wrapped(one.value, name, rng.choice(forms))
    lines[one.line] = f"{one.margin}{one.target} {sign} {value}"
    return "\n".join(lines)


CHANGES: tuple[Callable[[random.Random, Program], str], ...] = (
    bound, bound, narrow, narrow, several, reduced, reduced, started, bits, paired,
)  # fmt: skip


def mixed(rng: random.Random, program: Program, share: float = SHARE) -> Program:
    """Return a program with up to three random changes; some programs are not changed."""
    if rng.random() >= share:
        return program
    for _ in range(rng.randint(1, 3)):
        program = changed(program, rng.choice(CHANGES)(rng, program))
    return program


def changed(program: Program, text: str) -> Program:
    """Return a program with another text; the program itself if that text is not legal."""
    rounds = "abs(" in text and re.search(r"\bc(64|128)\b", text)  # a square root
    made = replace(program, text=text, exact=program.exact and not rounds)
    try:
        if text != program.text and violations(made.module):
            return program
    except TilewrightError:
        return program
    return made
