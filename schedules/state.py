"""State of a schedule: a program with the steps that produced it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType

from ..ir.analysis import Tree, tree_of
from ..ir.graph.nodes import GraphFunc
from ..ir.graph.visit import all_values
from ..ir.identity import STEP_STRIDE, UidSource
from ..ir.loop.nodes import INTRINSIC, Block, Buffer, For, PrimFunc
from ..ir.module import Module
from ..ir.symbolic import Expr, Var
from ..target.effective import merged_target
from ..target.host import with_level
from ..target.target import Target
from .handles import (
    HANDLE_TYPES,
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Handle,
    LoopRef,
    Move,
    Removed,
    kind_of,
    label,
)
from .problem import Problem, Problems, ScheduleError
from .requirement import CommonRequirement
from .step import Step
from .suggest_names import unknown
from .trace import ResultOf, Trace, TraceStep
from .values import Result

_NO_RESULTS: Mapping[Handle | Expr, ResultOf] = MappingProxyType({})


def _empty_memo() -> dict[object, object]:
    return {}


class StaleHandleError(ScheduleError):
    """A handle whose target does not exist. Checks report it before a rewrite uses it."""

    title = "Stale handle"


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """The position of the inside of a block, which is the function of a state.

    Parameters
    ----------
    around : State
        The state of the whole function.
    block : BlockRef
        The block.
    init : bool
        Whether the function is the init of the block, instead of its body.
    """

    around: State
    block: BlockRef
    init: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """A module, the trace that produced it, and its target.

    Parameters
    ----------
    module : Module
        The current program.
    trace : Trace
        The steps that produced it.
    target : Target or None
        The machine the program is scheduled for; None if no step needs it.
    results : tuple of tuple of Handle, int or Expr
        The handles and values that each step of the trace returned.
    known : Mapping[Handle or Expr, ResultOf]
        For each handle and term, the last step that returned it.
    moves : tuple of Move
        The handles that each step changed or removed.
    first : int
        The number of the first step, above those whose uids the module already contains.
    seed : int
        The seed of the steps that draw a random decision.
    applying : tuple of str
        The composite steps whose functions are running, outermost first. Unlike a context variable,
        they are known to threads that such a function starts.
    inside : Inside or None
        The block whose inside is the function of the state; None for a whole module.
    memo : dict
        Cached facts derived from this state. They are not part of its value.

    Examples
    --------
    >>> from ..ir.module import Module
    >>> State.start(Module()).ordinal
    1
    """

    module: Module
    trace: Trace = field(default_factory=Trace)
    target: Target | None = None
    results: tuple[tuple[Result, ...], ...] = ()
    known: Mapping[Handle | Expr, ResultOf] = field(default_factory=lambda: _NO_RESULTS)
    moves: tuple[Move, ...] = ()
    first: int = 1
    seed: int = 0
    applying: tuple[str, ...] = ()
    inside: Inside | None = None
    memo: dict[object, object] = field(default_factory=_empty_memo, init=False, repr=False)

    @classmethod
    def start(cls, module: Module, target: Target | None = None, seed: int = 0) -> State:
        """Return the state of a module with an empty trace."""
        return cls(module, target=target, first=1 + _last_step(module), seed=seed)

    def __repr__(self) -> str:
        """Return the number of steps and a summary of the program."""
        taken = len(self.trace)
        return f"<State: {taken} step{'' if taken == 1 else 's'} on {self.module!r}>"

    @property
    def ordinal(self) -> int:
        """The number of the next step, from which its uids are minted."""
        return self.first + len(self.trace)

    def operands(self, step: TraceStep) -> tuple[Handle, ...]:
        """Return the parts of programs that a step of the trace uses as results of other steps."""
        found = (self.results[ref.step][ref.index] for ref in step.operands() if ref.step >= 0)
        return tuple(result for result in found if isinstance(result, HANDLE_TYPES))

    def target_of(self, function: str) -> Target | None:
        """Return the effective target of a loop-level function; None if none is stated.

        It is that of the schedule with the options that the function states, or that of the
        function if they conflict. The features of the host CPU are explicit.
        """
        own, chosen = self.module.prim(function).target, self.target
        if own is not None:
            chosen = own if chosen is None else merged_target(chosen, own) or own
        return None if chosen is None else with_level(chosen)

    def launchable(
        self, target: Target | None = None, function: FunctionRef | str | None = None
    ) -> Problems:
        """Return the problems of launching the kernels on a target, without lowering them.

        Parameters
        ----------
        target : Target, optional
            The target; by default the effective target of each function, or the host CPU.
        function : FunctionRef or str, optional
            The kernel to check; by default all scheduled loop-level functions.

        Returns
        -------
        Problems
            The violated requirements, with numbers, limits, and the legal steps that fix them.
            Without any, lowering finds no error of a launch.
        """
        from .launchable import launchable  # above states: fixes are primitives

        return launchable(self, target, function)

    def tree(self, function: str) -> Tree:
        """Return the index of a loop-level function."""
        return tree_of(self.module.prim(function))

    def loop(self, ref: LoopRef) -> For:
        """Return the target of a loop handle."""
        found = self.tree(ref.function).loops.get(ref.uid)
        if found is None:
            raise self._stale(ref)
        return found

    def block(self, ref: BlockRef) -> Block:
        """Return the target of a block handle."""
        found = self.tree(ref.function).blocks.get(ref.uid)
        if found is None:
            raise self._stale(ref)
        return found

    def buffer(self, ref: BufferRef) -> Buffer:
        """Return the target of a buffer handle."""
        found = self.tree(ref.function).buffers.get(ref.uid)
        if found is None:
            raise self._stale(ref)
        return found

    def _stale(self, ref: Handle) -> StaleHandleError:
        return StaleHandleError(self.absence(ref) or f"{kind_of(ref)} {label(ref)} exists")

    def missing(self, step: Step) -> Iterator[Problem]:
        """Yield a problem for each handle of a step whose target does not exist."""
        for ref in dict.fromkeys(step.handles()):
            absence = self.absence(ref)
            if absence is not None:
                where = dict.fromkeys((ref, *self.follow(ref)))
                yield Problem(CommonRequirement.TARGETS_EXIST, absence, tuple(where))

    def absence(self, ref: Handle) -> str | None:
        """Return why the target of a handle does not exist; None if it does."""
        function = self.module.functions.get(ref.function)
        if function is None:
            return unknown("function", ref.function, list(self.module.functions), "the module")
        parts = _parts(ref, function)
        if parts is None:
            level = "loop" if isinstance(function, PrimFunc) else "graph"
            return f"{ref.function!r} is a {level}-level function and has no {kind_of(ref)}s"
        if isinstance(ref, FunctionRef) or ref.uid in parts:
            return None
        names = [_name(part) for part in parts.values()]
        return self._removal(ref) or unknown(
            kind_of(ref), label(ref), names, f"function {ref.function!r}"
        )

    def _removal(self, ref: Handle) -> str | None:
        for move in reversed(self.moves):
            new = move.moved.get(ref)
            if new is None:
                continue
            action = (
                new.reason
                if isinstance(new, Removed)
                else f"replaced it by {', '.join(label(r) for r in new)}"
            )
            return (
                f"{kind_of(ref)} {label(ref)!r} no longer exists: step {move.ordinal} "
                f"({move.step}) {action}"
            )
        return None

    def enclosed(self, step: Step) -> Iterator[Problem]:
        """Yield a problem for each handle inside a tensorized block.

        The body of such a block belongs to its instruction.
        """
        for ref in dict.fromkeys(step.handles()):
            if isinstance(ref, LoopRef | BlockRef):
                tree = self.tree(ref.function)
                node = self.loop(ref) if isinstance(ref, LoopRef) else self.block(ref)
                blocks = (s for s in tree.ancestors(node) if isinstance(s, Block))
                for block in blocks:
                    intrinsic = dict(block.annotations).get(INTRINSIC)
                    if intrinsic is not None:
                        yield Problem(
                            CommonRequirement.OUTSIDE_OF_INSTRUCTIONS,
                            f"{label(ref)!r} is inside block {block.name!r}, which {intrinsic} "
                            f"implements; unannotate(target={block.name}, key={INTRINSIC!r}) "
                            "removes the instruction",
                            (ref,),
                        )
                        break

    def names(self, function: str) -> frozenset[str]:
        """Return the names in use in a loop-level function, also around the inside of a block."""
        own = self.tree(function).names()
        return own if self.inside is None else own | self.inside.around.names(function)

    def symbols(self, step: Step) -> Mapping[str, Var]:
        """Return the symbols that a step's terms may name: those of its first function."""
        ref = next(step.handles(), None)
        function = None if ref is None else self.module.functions.get(ref.function)
        if not isinstance(function, PrimFunc):
            return {}
        return {v.name: v for v in tree_of(function).symbols()}

    def follow(self, ref: Handle, since: State | None = None) -> tuple[Handle, ...]:
        """Return the current successors of a handle: itself, its replacements, or none.

        Parameters
        ----------
        ref : Handle
            The handle.
        since : State, optional
            The earlier state of which it is a handle; by default the start. An earlier function of
            the same name may have had a part of the same number.
        """
        found: list[Handle] = [ref]
        for move in self.moves[0 if since is None else len(since.moves) :]:
            found = [new for old in found for new in _moved(move, old)]
        return tuple(found)

    def random(self) -> Random:
        """Return the source of random decisions of the next step, determined by the seed."""
        return Random(f"{self.seed}:{len(self.trace)}")

    def minted(self) -> UidSource:
        """Return the source of uids for the next step."""
        return UidSource(step=self.ordinal)

    def with_module(self, module: Module) -> State:
        """Return the state with another module and the same trace, for tests and previews."""
        return replace(self, module=module)


def _moved(move: Move, ref: Handle) -> tuple[Handle, ...]:
    new = move.moved.get(ref, (ref,))
    return () if isinstance(new, Removed) else new


def _parts(ref: Handle, function: GraphFunc | PrimFunc) -> Mapping[int, object] | None:
    """Return the parts of the kind of a handle by uid; None if the function has no such parts."""
    if isinstance(ref, FunctionRef):
        return {}
    if isinstance(function, GraphFunc):
        if not isinstance(ref, BindingRef):
            return None
        return {v.uid: v for v in all_values(function)}
    tree = tree_of(function)
    match ref:
        case LoopRef():
            return tree.loops
        case BlockRef():
            return tree.blocks
        case BufferRef():
            return tree.buffers
        case BindingRef():
            return None


def _name(part: object) -> str:
    """Return the name of a loop, block, buffer or value."""
    named = part.var if isinstance(part, For) else part
    return str(getattr(named, "name", ""))


def _last_step(module: Module) -> int:
    largest = 0
    for function in module:
        if isinstance(function, PrimFunc):
            tree = tree_of(function)
            uids = (*tree.loops, *tree.blocks, *tree.buffers)
        else:
            uids = tuple(v.uid for v in all_values(function))
        largest = max(largest, *uids, 0)
    return largest // STEP_STRIDE
