"""Thread-IR statements as WGSL statements."""

from __future__ import annotations

from typing import Final

from ...ir.dtype import DType
from ...ir.thread.nodes import (
    Allocate,
    Assign,
    AtomicUpdate,
    Barrier,
    Body,
    Call,
    Gather,
    If,
    Let,
    Load,
    Loop,
    MachineOp,
    Reg,
    Return,
    Scatter,
    Stmt,
    Store,
    Value,
    While,
)
from ...ir.thread.operations.nvidia import TRAP
from ...ir.thread.types import PointerType
from ...ir.thread.visit import statement_values, walk_values
from .emitter import Emitter, bare, dtype_of, vector
from .memory import Array, Pointers, element_index, local_count, store, width_of, word_of
from .operations import binary
from .registers import Declarations, Site
from .terms import fits, short, wide
from .types import WORD, pair, type_name
from .values import Values, short_value

_ATOMIC: Final = {
    "add": "atomicAdd", "sub": "atomicSub", "and": "atomicAnd", "or": "atomicOr",
    "xor": "atomicXor", "exchange": "atomicExchange",
}  # fmt: skip
_UNSIGNED_ATOMIC: Final = {**_ATOMIC, "min": "atomicMin", "max": "atomicMax"}


class Statements:
    """The statements of one kernel."""

    def __init__(self, em: Emitter, pointers: Pointers, declared: Declarations) -> None:
        """Initialize for a kernel."""
        self.em = em
        self.pointers = pointers
        self.declared = declared
        self.values = Values(em, pointers)
        self.storage_barriers = any(a.space == "storage" for a in pointers.arrays.values())

    def body(self, statements: Body) -> None:
        """Write a list of statements."""
        for k, statement in enumerate(statements):
            self.write(statement, (id(statements), k))

    def write(self, statement: Stmt, site: Site) -> None:
        """Write one statement; the registers that it begins are declared before it."""
        em = self.em
        if isinstance(statement, Assign) and isinstance(statement.reg.type, PointerType):
            return
        em.locate(statement.source)
        for reg in self.declared.before.get(site, ()):
            for text in em.declaration(reg):
                em.line(text)
        self.values.statement(statement_values(statement))
        match statement:
            case Let():
                self._let(statement)
            case Assign(reg=reg, value=value):
                self._assign(reg, value, declared=(site, reg) not in self.declared.at)
            case Allocate():
                self._allocate(statement)
            case Store(address=address, value=value, stride=stride, mask=mask):
                of = vector(value)
                positions = self.values.located(address, stride, of)
                self._store(address.base, positions, value, mask)
            case Scatter(base=base, offsets=offsets, value=value, mask=mask):
                positions = self.values.scattered(base, offsets, vector(value))
                self._store(base, positions, value, mask)
            case Loop():
                self._loop(statement)
            case While(condition=condition, body=body):
                with em.block("loop"):
                    self.values.statement((condition,))
                    with em.block(f"if !({bare(self.values.one(condition))})"):
                        em.line("break;")
                    self.body(body)
            case If():
                self._if(statement)
            case _:
                self._other(statement)

    def _other(self, statement: Stmt) -> None:
        em = self.em
        match statement:
            case Call(callee=str() as callee, args=args, result=Reg() as result):
                given = [self.values.lanes(a) for a in args]
                lanes = [
                    f"{callee}({', '.join(map(bare, part))})" for part in zip(*given, strict=True)
                ]
                self._set(result, lanes, declared=True)
            case Return(value=None):
                em.line("return;")
            case Barrier(scope=scope):
                if scope != "thread":
                    em.line("workgroupBarrier();")
                    if self.storage_barriers:
                        em.line("storageBarrier();")
            case MachineOp(operation=operation, args=args, source=source) if operation is TRAP:
                self._fail(args, source.note)
            case AtomicUpdate():
                self._update(statement)
            case MachineOp(operation=operation):
                raise em.unsupported(f"operation {operation.name!r}")
            case _:
                raise em.unsupported(f"a statement {type(statement).__name__}")

    def _let(self, statement: Let) -> None:
        em, var = self.em, statement.var
        name = em.names.make(var.name)
        if fits(em, var):
            em.line(f"let {name} = {bare(short_value(self.values, statement.value))};")
            em.variables[var] = name, True
        else:
            em.line(f"let {name} = {bare(self.values.one(statement.value))};")
            em.variables[var] = name, False

    def _assign(self, reg: Reg, value: Value, *, declared: bool) -> None:
        lanes = self.values.lanes(value)
        if len(lanes) > 1 and any(
            isinstance(v, Load | Gather | Reg) for v in walk_values((value,))
        ):
            lanes = [self.em.keep(x) if not x.isidentifier() else x for x in lanes]
            names = set(self.em.registers.get(reg, ()))
            lanes = [self._copied(x) if x in names else x for x in lanes]
        self._set(reg, lanes, declared=declared)

    def _copied(self, name: str) -> str:
        copy = self.em.names.make(name)
        self.em.line(f"let {copy} = {name};")
        return copy

    def _set(self, reg: Reg, lanes: list[str], *, declared: bool) -> None:
        em = self.em
        of = type_name(vector(reg).dtype)
        for name, text in zip(em.declare(reg), lanes, strict=True):
            em.line(f"{name} = {bare(text)};" if declared else f"var {name}: {of} = {bare(text)};")

    def _allocate(self, statement: Allocate) -> None:
        array = self.pointers.arrays.get(statement.reg)
        if array is not None and array.space == "function":
            count = local_count(array, statement.size)
            self.em.line(f"var {array.name}: array<{array.element}, {count}>;")

    def _store(self, base: Value, positions: list[str], value: Value, mask: Value | None) -> None:
        em, of = self.em, vector(value)
        array = self.values.array(base)
        masks = None if mask is None else self.values.kept(mask)
        lanes = self.values.lanes(value)
        if of.lanes > 1 and any(isinstance(v, Load | Gather) for v in walk_values((value,))):
            lanes = [em.keep(x) for x in lanes]
        for k, (at, text) in enumerate(zip(positions, lanes, strict=True)):
            if masks is None:
                store(em, array, of.dtype, at, text)
                continue
            with em.block(f"if {masks[k % len(masks)]}"):
                store(em, array, of.dtype, at, text)

    def _loop(self, loop: Loop) -> None:
        em, var = self.em, loop.var
        narrow = all(fits(em, term) for term in (loop.start, loop.stop, var))
        if narrow:
            start, stop = bare(short(em, loop.start)), short(em, loop.stop)
            name = em.names.make(var.name)
            step = f"{name}++" if loop.step == 1 else f"{name} += {loop.step}i"
            head = f"for (var {name}: i32 = {start}; {name} < {stop}; {step})"
        else:
            start, stop = wide(em, loop.start), em.keep(wide(em, loop.stop), "stop")
            name = em.names.make(var.name)
            step = f"{name} = tw_add64({name}, {pair(loop.step)})"
            head = f"for (var {name} = {start}; tw_lt_i64({name}, {stop}); {step})"
        em.variables[var] = name, narrow
        with em.block(head):
            self.body(loop.body)

    def _if(self, branch: If) -> None:
        em = self.em
        with em.block(f"if {bare(self.values.one(branch.condition))}"):
            self.body(branch.then)
        if branch.otherwise:
            em.lines[-1] += " else {"
            em.depth += 1
            self.body(branch.otherwise)
            em.depth -= 1
            em.line("}")

    def _fail(self, args: tuple[Value, ...], note: str) -> None:
        """Record the first failed check; a kernel without barriers ends before the access.

        With barriers, the access is limited to its binding, as a shader accesses no other memory.
        """
        em = self.em
        em.messages.append(note)
        value, bound = (bare(self.values.one(a)) for a in args)
        em.line(f"tw_fail({len(em.messages)}u, {value}, {bound});")
        if em.leaves_on_failure:
            em.line("return;")

    def _update(self, update: AtomicUpdate) -> None:
        em, of = self.em, dtype_of(update.value)
        if width_of(of) > WORD:
            raise em.unsupported(f"an atomic update of dtype {of}")
        array = self.values.array(update.address.base)
        index = element_index(em, self.pointers, update.address.base, update.address.offset, of)
        value = em.keep(self.values.one(update.value))
        native = _UNSIGNED_ATOMIC if of.kind == "uint" else _ATOMIC
        exact = of.bits == 8 * WORD and (not of.is_float or update.op == "exchange")
        if update.op in native and exact:
            bits = value if type_name(of) == "u32" else f"bitcast<u32>({value})"
            call = f"{native[update.op]}(&{word_of(array, index)}, {bits})"
            if update.result is None:
                em.line(f"{call};")
                return
            old = em.keep(call, "old")
            text = old if type_name(of) == "u32" else f"bitcast<{type_name(of)}>({old})"
            self._set(update.result, [text], declared=True)
            return
        self._exchange(update, array, of, index, value)

    def _exchange(
        self, update: AtomicUpdate, array: Array, of: DType, index: str, value: str
    ) -> None:
        """Repeat an update until no other invocation changes the word between load and store."""
        em, width = self.em, width_of(of)
        if width < WORD:
            raise em.unsupported(f"an atomic update of dtype {of}")
        word = word_of(array, index)
        with em.block("loop"):
            old = em.names.make("old")
            em.line(f"let {old} = atomicLoad(&{word});")
            before = old if type_name(of) == "u32" else f"bitcast<{type_name(of)}>({old})"
            after = value
            if update.op != "exchange":
                after = binary(em, update.op, em.keep(before, "before"), value, of)
            bits = after if type_name(of) == "u32" else f"bitcast<u32>({bare(after)})"
            if update.result is not None:
                self._set(update.result, [before], declared=True)
            changed = f"atomicCompareExchangeWeak(&{word}, {old}, {bare(bits)}).exchanged"
            with em.block(f"if {changed}"):
                em.line("break;")
