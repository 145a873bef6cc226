"""Well-formedness checks of loop-level functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final, assert_never

from ..analysis.domains import dependent_bindings
from ..analysis.enclosing import statements_around
from ..analysis.entry_checks import obligations
from ..analysis.loaded_integers import unproved_ranges
from ..analysis.races import races
from ..analysis.tree import tree_of
from ..identity import Uid
from ..naming import is_valid_name
from ..symbolic import Bool, Expr, Var, const_value
from ..violations import Collector, Violation
from . import rules
from .cover import uncovered
from .decompose import reduction_position, separate_init
from .nodes import (
    INTRINSIC,
    Alloc,
    Bind,
    Block,
    Buffer,
    BufferParam,
    Element,
    For,
    If,
    Let,
    Load,
    Local,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
)
from .ranges import is_empty
from .scans import declaration_problems, hidden_locals
from .structural_hash import verification_key
from .typing import dtype_problems
from .visit import all_buffers, allocations, loads, stores, used_variables, walk, walk_element

_MAX_VERIFIED: Final = 4096

_VERIFIED: set[tuple[str, str]] = set()
"""The keys of functions without violations, which are not checked again."""


def loop_violations(func: PrimFunc) -> tuple[Violation, ...]:
    """Return all violations of the well-formedness rules in a loop-level function.

    Regions that are not single elements are checked by proof; an access that is neither proved nor
    refuted to be covered is not a violation.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> y = Buffer(1, "y", (as_expr(8),), f32)
    >>> bad = PrimFunc("f", (), Store(y, (), Load(y, (as_expr(0),))))
    >>> [v.rule.name for v in loop_violations(bad)]
    ['declared buffers', 'rank of accesses', 'stores in blocks']
    """
    key = verification_key(func)
    if key in _VERIFIED:
        return ()
    found = tuple(_Checker(func).run())
    if not found:
        if len(_VERIFIED) >= _MAX_VERIFIED:
            _VERIFIED.clear()
        _VERIFIED.add(key)
    return found


class _Checker:
    """The checker of one function; it tracks the variables in scope."""

    def __init__(self, func: PrimFunc) -> None:
        self._func = func
        self._out = Collector(func.name)
        self._buffers = {*func.buffer_params, *func.buffers}
        self._read_only = {
            p.buffer for p in func.params if isinstance(p, BufferParam) and p.access == "in"
        }
        self._symbols = self._parameter_symbols()
        self._scope: dict[Var, str] = dict.fromkeys(self._symbols, "symbol")
        self._hidden: dict[Var, str] = {}
        self._locals: set[Local] = set()
        self._operands: set[Local] = set()
        self._in_block = False
        self._executed = True
        self._ever_bound: set[Var] = set()
        self._concurrent: list[For] = []

    def run(self) -> list[Violation]:
        """Check the signature, then the statements."""
        self._check_identity()
        self._check_symbols()
        for buffer in (*self._func.buffer_params, *self._func.buffers):
            self._check_buffer(buffer)
        for fact in (*self._func.facts, *self._func.facts.hints):
            self._use(fact.predicate, "a fact")
        self._statement(self._func.body)
        if not self._out.found:
            self._check_written()
        if not self._out.found:
            self._check_separable()
        if not self._out.found:
            self._check_bounds()
            self._check_loaded_integers()
        if not self._out.found and ("scheduled", True) not in self._func.attributes:
            self._check_bindings()
        if not self._out.found:
            self._check_races()
        return self._out.found

    def _check_written(self) -> None:
        """Check that outputs, and temporaries that are read, are written."""
        written = {s.buffer for s in stores(self._func.body)}
        scoped = (alloc.buffer for alloc in allocations(self._func.body))
        outputs = [
            p.buffer
            for p in self._func.params
            if isinstance(p, BufferParam) and p.access == "out" and p.buffer not in written
        ]
        for buffer in outputs:
            if all(const_value(dim) != 0 for dim in buffer.shape):
                message = f"output {buffer.name!r} is never written"
                self._out.report(rules.WRITTEN, message, buffer.uid)
        missing = [b for b in (*self._func.buffers, *scoped) if b not in written]
        if not missing:
            return
        read = {load.buffer for load in loads(self._func.body)}
        for buffer in missing:
            if buffer in read:
                message = f"temporary {buffer.name!r} is read and never written"
                self._out.report(rules.WRITTEN, message, buffer.uid)

    def _check_loaded_integers(self) -> None:
        for let, reason in unproved_ranges(self._func):
            self._out.report(rules.PROVED, f"variable {let.var.name!r}: {reason}")

    def _check_separable(self) -> None:
        """Report inits that cannot run before the loops of their reductions."""
        tree = tree_of(self._func)
        for block in tree.blocks.values():
            if block.init is None:
                continue
            path = statements_around(tree, block)
            if separate_init(path, block):
                self._check_init_scope(block, path)
                continue
            self._out.report(
                rules.INIT,
                f"the init of block {block.name!r} cannot run before the reduction: how many "
                "iterations its spatial loops have is known only inside of the reduction loops",
                block.uid,
            )

    def _check_init_scope(self, block: Block, path: tuple[Stmt, ...]) -> None:
        """Report buffers of an init that are allocated inside of the loops of its reduction."""
        inside = path[reduction_position(path, block) :]
        made = {s.buffer for s in inside if isinstance(s, Alloc)}
        if not made or block.init is None:
            return
        used = {x.buffer for x in (*stores(block.init), *loads(block.init))}
        for buffer in sorted(made & used, key=lambda b: b.name):
            self._out.report(
                rules.INIT,
                f"the init of block {block.name!r} runs before the reduction, but buffer "
                f"{buffer.name!r} is allocated inside of the reduction loops",
                buffer.uid,
            )

    def _check_bindings(self) -> None:
        """Report iteration variables that other iteration variables determine."""
        tree = tree_of(self._func)
        for block in tree.blocks.values():
            relation = dependent_bindings(tree, block)
            if relation is not None:
                self._out.report(
                    rules.INDEPENDENT,
                    f"the bindings of block {block.name!r} are not independent: {relation} in "
                    "every iteration",
                    block.uid,
                )

    def _check_races(self) -> None:
        """Report the dependences between iterations of loops that run them at the same time."""
        tree = tree_of(self._func)
        for loop in self._concurrent:
            for race in races(tree, loop):
                self._out.report(
                    rules.RACES,
                    f"loop {loop.var.name!r} is {loop.kind_text}, but {race.reason}",
                    loop.uid,
                    fix=race.fix,
                )

    def _check_bounds(self) -> None:
        """Report the accesses and divisions that no argument makes legal."""
        for obligation in obligations(self._func):
            if obligation.status == "outside":
                message = f"{obligation.kind} {obligation.text} for all arguments"
                self._out.report(rules.BOUNDS, message, obligation.uid)

    def _check_identity(self) -> None:
        func, nodes = self._func, list(walk(self._func.body))
        buffers = [(b.uid, b.name) for b in all_buffers(func)]
        blocks = [(n.uid, n.name) for n in nodes if isinstance(n, Block)]
        loops = [(n.uid, n.var.name) for n in nodes if isinstance(n, For)]
        for uid, count in Counter(u for u, _ in (*buffers, *blocks, *loops)).items():
            if count > 1:
                self._out.report(rules.UIDS, f"{count} nodes have uid {uid}", uid)
        for kind, named in (("buffer", buffers), ("block", blocks), ("loop", loops)):
            self._check_names(kind, named)
        self._check_name("function", func.name, None)

    def _check_names(self, kind: str, named: Iterable[tuple[Uid, str]]) -> None:
        owners: dict[str, list[Uid]] = {}
        for uid, name in named:
            owners.setdefault(name, []).append(uid)
        for name, uids in owners.items():
            self._check_name(kind, name, uids[0])
            if len(uids) > 1:
                message = f"{len(uids)} {kind}s are named {name!r}"
                self._out.report(rules.NAMES, message, uids[-1])

    def _check_name(self, kind: str, name: str, uid: Uid | None) -> None:
        if not is_valid_name(name):
            message = f"{kind} name {name!r} is not a valid identifier of the text format"
            self._out.report(rules.VALID_NAMES, message, uid)

    def _parameter_symbols(self) -> dict[Var, bool]:
        """Return the symbols of the parameters and whether each is bound by one of them."""
        symbols: dict[Var, bool] = {}
        for param in self._func.params:
            dims = param.buffer.shape if isinstance(param, BufferParam) else (param.var,)
            for dim in dims:
                for symbol in dim.free:
                    symbols[symbol] = symbols.get(symbol, False) or dim is symbol
        return symbols

    def _check_symbols(self) -> None:
        for symbol, bound in self._symbols.items():
            if not bound:
                self._out.report(
                    rules.SYMBOLS,
                    f"no parameter defines symbol {symbol.name!r}: it must be a dimension by "
                    f"itself ({symbol.name}, not {symbol.name} + 1) or an integer parameter",
                )
        names = Counter(s.name for s in self._symbols)
        for name, count in names.items():
            self._check_name("symbol", name, None)
            if count > 1:
                self._out.report(rules.NAMES, f"{count} symbols are named {name!r}")

    def _check_buffer(self, buffer: Buffer) -> None:
        with self._out.inside(f"buffer {buffer.name!r}", buffer.uid):
            for dim in buffer.shape:
                self._use(dim, "the shape")
        self._check_attributes(buffer)

    def _check_attributes(self, buffer: Buffer) -> None:
        with self._out.inside(f"buffer {buffer.name!r}", buffer.uid):
            if buffer.strides is not None and len(buffer.strides) != buffer.rank:
                self._mismatch("strides", len(buffer.strides), buffer)
            if buffer.layout is not None and len(buffer.layout.inputs) != buffer.rank:
                self._mismatch("layout inputs", len(buffer.layout.inputs), buffer)
            if buffer.alignment < 1 or buffer.alignment & (buffer.alignment - 1):
                message = f"alignment {buffer.alignment} is not a power of two"
                self._out.report(rules.BUFFERS, message)

    def _mismatch(self, field: str, count: int, buffer: Buffer) -> None:
        message = f"number of {field}: expected {buffer.rank}, one per dimension, got {count}"
        self._out.report(rules.BUFFERS, message)

    def _bind(self, variable: Var, kind: str, stack: ExitStack) -> None:
        """Add a variable to the scope until the stack closes."""
        if variable in self._ever_bound:
            self._out.report(rules.BOUND_ONCE, f"{kind} {variable.name!r} is bound twice")
        others = (v for v in (*self._scope, *self._hidden) if v.name == variable.name)
        if any(v is not variable for v in others):
            self._out.report(rules.NAMES, f"another variable named {variable.name!r} is in scope")
        self._check_name(kind, variable.name, None)
        self._ever_bound.add(variable)
        self._scope[variable] = kind
        stack.callback(self._scope.pop, variable, None)

    def _use(self, term: Expr | Bool, where: str) -> None:
        """Check that the variables of a term are in scope."""
        for variable in term.free:
            if variable in self._scope:
                continue
            if variable in self._hidden:
                rule = rules.ISOLATION
                kind = self._hidden[variable]
                message = f"{where} uses {kind} {variable.name!r} from outside the block"
            else:
                rule = rules.SCOPE
                message = f"{where} uses variable {variable.name!r}, which is not in scope"
            self._out.report(rule, message)

    def _statement(self, statement: Stmt) -> None:
        match statement:
            case Store():
                self._store(statement)
            case For():
                self._for(statement)
            case Block():
                self._block(statement)
            case Seq(body=parts):
                for part in parts:
                    self._statement(part)
                if any(isinstance(part, Alloc) for part in parts[:-1]):
                    message = "statements follow an allocation outside of its body"
                    self._out.report(rules.ALLOCATIONS, message)
                if any(isinstance(part, Bind) for part in parts[:-1]):
                    self._out.report(rules.BINDS, "statements follow a value outside of its scope")
            case Alloc():
                self._alloc(statement)
            case Bind():
                self._bound_value(statement)
            case If(condition=condition, then=then, otherwise=otherwise):
                self._use(condition, "a condition")
                for branch in (then, otherwise):
                    if branch is not None:
                        self._statement(branch)
            case Let():
                self._let(statement)
            case _:
                assert_never(statement)

    def _store(self, store: Store) -> None:
        self._access(store.buffer, store.indices)
        if store.buffer in self._read_only:
            message = f"parameter {store.buffer.name!r} has access mode 'in' but is written"
            self._out.report(rules.ACCESS, message, store.buffer.uid)
        self._element(store.value)
        if store.value.dtype != store.buffer.dtype:
            self._out.report(
                rules.DTYPES,
                f"a value of dtype {store.value.dtype} is stored in buffer {store.buffer.name!r} "
                f"of dtype {store.buffer.dtype}",
            )
        if not self._in_block:
            message = f"the store to {store.buffer.name!r} is outside of blocks"
            self._out.report(rules.STORES, message, store.buffer.uid)

    def _access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        self._declared(buffer)
        if len(indices) != buffer.rank:
            noun = "index" if buffer.rank == 1 else "indices"
            self._out.report(
                rules.RANK,
                f"expected {buffer.rank} {noun} into buffer {buffer.name!r}, got {len(indices)}",
            )
        for index in indices:
            self._use(index, f"an index of {buffer.name!r}")

    def _declared(self, buffer: Buffer) -> None:
        if buffer in self._buffers:
            return
        if any(alloc.buffer is buffer for alloc in allocations(self._func.body)):
            message = f"buffer {buffer.name!r} is used outside of the scope of its allocation"
        else:
            known = ", ".join(sorted(b.name for b in self._buffers)) or "none"
            message = f"buffer {buffer.name!r} is not declared; buffers are {known}"
        self._out.report(rules.DECLARED, message)

    def _element(self, element: Element) -> None:
        for problem in dtype_problems(element):
            self._out.report(rules.DTYPES, problem)
        for part in walk_element(element):
            if isinstance(part, Load):
                self._access(part.buffer, part.indices)
            elif isinstance(part, Local):
                self._local(part)
            else:
                value = getattr(part, "value", None)
                if isinstance(value, Expr | Bool):
                    self._use(value, "an element")

    def _local(self, local: Local) -> None:
        if local not in self._locals:
            message = f"value {local.name!r} is used outside of the scope of its bind"
            self._out.report(rules.BINDS, message)

    def _bound_value(self, bind: Bind) -> None:
        local = bind.local
        with self._out.inside(f"value {local.name!r}"):
            self._element(bind.value)
            if bind.value.dtype != local.dtype:
                message = f"a value of dtype {bind.value.dtype} is bound with dtype {local.dtype}"
                self._out.report(rules.DTYPES, message)
            if not self._in_block:
                self._out.report(rules.BINDS, f"value {local.name!r} is bound outside of blocks")
            if local in self._locals:
                self._out.report(rules.BINDS, f"value {local.name!r} is bound in its own scope")
            self._check_name("value", local.name, None)
            names = {v.name for v in (*self._scope, *self._hidden, *self._buffers)}
            names |= {other.name for other in self._locals if other is not local}
            if local.name in names and local not in self._operands:
                message = f"a variable, buffer or value named {local.name!r} is in scope"
                self._out.report(rules.NAMES, message)
            outer = self._locals
            self._locals = outer | {local}
            self._statement(bind.body)
            self._locals = outer

    def _for(self, loop: For) -> None:
        with self._out.inside(f"loop {loop.var.name!r}", loop.uid), ExitStack() as stack:
            self._use(loop.extent, "the extent")
            if (loop.kind == "thread") != bool(loop.thread):
                message = (
                    f"a {loop.kind} loop cannot have a thread tag, got {loop.thread!r}"
                    if loop.thread
                    else "a thread-bound loop requires a thread tag, such as 'blockIdx.x'"
                )
                self._out.report(rules.LOOPS, message)
            self._bind(loop.var, "loop variable", stack)
            outer, self._executed = self._executed, self._executed and not is_empty(loop)
            if self._executed and loop.kind in ("parallel", "vectorized", "thread"):
                self._concurrent.append(loop)
            self._statement(loop.body)
            self._executed = outer

    def _let(self, let: Let) -> None:
        with self._out.inside(f"variable {let.var.name!r}"), ExitStack() as stack:
            self._use(let.lower, "the lower bound")
            self._use(let.upper, "the upper bound")
            self._element(let.load)
            if not let.load.dtype.is_integer:
                name, dtype = let.load.buffer.name, let.load.dtype
                message = (
                    f"an index is loaded from {name!r} of dtype {dtype}; expected an integer dtype"
                )
                self._out.report(rules.DTYPES, message)
            self._bind(let.var, "variable", stack)
            self._statement(let.body)

    def _alloc(self, alloc: Alloc) -> None:
        buffer = alloc.buffer
        if buffer in self._buffers:
            message = f"buffer {buffer.name!r} is allocated in its own scope"
            self._out.report(rules.ALLOCATIONS, message, buffer.uid)
        for dim in (*buffer.shape, *(buffer.strides or ())):
            self._use(dim, f"the shape of {buffer.name!r}")
        self._check_attributes(buffer)
        self._buffers.add(buffer)
        self._statement(alloc.body)
        self._buffers.discard(buffer)

    def _block(self, block: Block) -> None:
        with self._out.inside(f"block {block.name!r}", block.uid):
            for iter_var in block.iters:
                self._use(iter_var.extent, "an extent")
                self._use(iter_var.binding, "a binding")
            self._use(block.predicate, "the predicate")
            with self._isolated(), ExitStack() as stack:
                for iter_var in block.iters:
                    self._bind(iter_var.var, "iteration variable", stack)
                for region in (*block.reads, *block.writes):
                    self._region(region)
                if block.init is not None:
                    self._statement(block.init)
                self._operands = hidden_locals(block)
                self._statement(block.body)
            self._check_tensorized(block)
            self._check_reduction(block)
            for message in declaration_problems(block):
                self._out.report(rules.REDUCERS, message)
            if self._executed:
                self._check_regions(block)

    def _isolated(self) -> ExitStack:
        """Hide all variables except symbols until the stack closes."""
        outer, hidden, in_block = self._scope, self._hidden, self._in_block
        values, self._locals = self._locals, set()
        self._in_block = True
        self._scope = dict.fromkeys(self._symbols, "symbol")
        self._hidden = hidden | {v: w for v, w in outer.items() if v not in self._symbols}
        stack = ExitStack()
        stack.callback(self._restore, outer, hidden, in_block=in_block)
        stack.callback(setattr, self, "_locals", values)
        return stack

    def _restore(self, scope: dict[Var, str], hidden: dict[Var, str], *, in_block: bool) -> None:
        self._scope, self._hidden, self._in_block = scope, hidden, in_block

    def _region(self, region: Region) -> None:
        self._declared(region.buffer)
        if len(region.ranges) != region.buffer.rank:
            noun = "range" if region.buffer.rank == 1 else "ranges"
            self._out.report(
                rules.RANK,
                f"expected {region.buffer.rank} {noun} of buffer {region.buffer.name!r}, "
                f"got {len(region.ranges)}",
            )
        for part in region.ranges:
            self._use(part.start, f"a region of {region.buffer.name!r}")
            self._use(part.extent, f"a region of {region.buffer.name!r}")

    def _check_tensorized(self, block: Block) -> None:
        named = dict(block.annotations).get(INTRINSIC)
        if named is None:
            return
        if not isinstance(named, str):
            self._out.report(
                rules.TENSORIZED, f"the annotation must be the name of an intrinsic, got {named!r}"
            )
        below = block.body
        while isinstance(below, For):
            below = below.body
        held = isinstance(below, Block) and isinstance(below.body, Store)
        starts = block.init is not None or (isinstance(below, Block) and below.init is not None)
        if not held or starts:
            reason = (
                "it contains an init"
                if starts
                else "its body is not a perfect nest around a block with a single store"
            )
            message = f"intrinsic {named!r} cannot replace the block: {reason}"
            self._out.report(rules.TENSORIZED, message)

    def _check_reduction(self, block: Block) -> None:
        reduced = {v.var for v in block.iters if v.kind == "reduce"}
        if not reduced:
            return
        body = _outer_stores(block.body)
        self._check_init(block, reduced)
        for store in body:
            for index in store.indices:
                for variable in index.free & reduced:
                    self._out.report(
                        rules.REDUCTION,
                        f"a write index of buffer {store.buffer.name!r} contains reduction "
                        f"variable {variable.name!r}",
                    )
        written = {s.buffer for s in body}
        if block.init is None:
            own = {load.buffer for load in loads(block.body)}
            missing = written - own
            message = "has no init and is not read by the update"
        else:
            missing = {s.buffer for s in _outer_stores(block.init)} ^ written
            message = "is written by only one of init and body"
        for buffer in sorted(missing, key=lambda b: b.name):
            self._out.report(rules.REDUCTION, f"buffer {buffer.name!r} {message}")

    def _check_init(self, block: Block, reduced: set[Var]) -> None:
        """Check that the init, which runs once per reduction, uses no reduction variables."""
        if block.init is None:
            return
        for variable in sorted(used_variables(block.init) & reduced, key=lambda v: v.serial):
            message = f"the init contains reduction variable {variable.name!r}"
            self._out.report(rules.REDUCTION, message)

    def _check_regions(self, block: Block) -> None:
        facts = self._func.facts
        for iter_var in block.iters:
            facts = facts.with_loop(iter_var.var, iter_var.extent)
        if not any(uncovered(block, lambda _: facts)):
            return
        # Steps inside of the block may use facts of the loops around it.
        for message in uncovered(block, tree_of(self._func).facts):
            self._out.report(rules.REGIONS, message)


def _outer_stores(part: Stmt) -> list[Store]:
    """Return the stores of a statement to buffers that it does not allocate."""
    own = {alloc.buffer for alloc in allocations(part)}
    return [store for store in stores(part) if store.buffer not in own]
