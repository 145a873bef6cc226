"""History of a schedule: a tree of content-addressed versions."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import Json
from ..ir.structural_hash import structural_hash
from ..target.target import Target
from .problem import ScheduleError
from .state import State
from .text import group_json, step_json
from .trace import Group, Trace, TraceStep


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """A version. Its id is a digest of the program at the root and of all steps since.

    Parameters
    ----------
    id : str
        The hexadecimal digest.
    parent : str or None
        The id of the previous version; None at the root.
    state : State
        The program and its trace.
    start : int
        The number of steps of the previous version.
    """

    id: str
    parent: str | None
    state: State
    start: int = 0

    @property
    def step(self) -> TraceStep | Group:
        """The last step, or the group of its steps if it is a composite step.

        Raises
        ------
        ScheduleError
            If this is the root, which has no step.
        """
        if not len(self.state.trace):
            raise ScheduleError("the root of a history has no step")
        trace = self.state.trace
        whole = (g for g in trace.groups if g.first >= self.start and g.stop == len(trace))
        return next(whole, None) or trace[-1]

    def __repr__(self) -> str:
        """Return the beginning of the id and the last step."""
        step = self.step.op if len(self.state.trace) else "start"
        return f"<Version {self.id[:8]}: {step}>"


class History:
    """A thread-safe tree of versions.

    Parameters
    ----------
    root : State
        The first version.
    draft : bool
        True for the history of a draft, whose versions are numbered: a digest of the program is
        linear in its size, and versions of a draft are never compared with others.
    """

    def __init__(self, root: State, *, draft: bool = False) -> None:
        """Create the tree with its first version."""
        self._lock = threading.Lock()
        self._draft = draft
        self._count = itertools.count()
        self.root = Node(self._numbered() if draft else _root_digest(root), None, root)
        self._nodes: dict[str, Node] = {self.root.id: self.root}
        self._next: dict[str, str] = {}

    def __getitem__(self, node: str) -> Node:
        """Return a version by its id or a unique prefix of it."""
        start = str(node)
        exact = self._nodes.get(start)
        found = [exact] if exact else [n for k, n in self._nodes.items() if k.startswith(start)]
        if len(found) != 1:
            raise ScheduleError(
                f"{len(found)} versions have an id with prefix {node!r}; expected exactly one",
                where="history",
                hint=f"the ids of the {len(self._nodes)} versions are [n.id for n in sch.history]",
            )
        return found[0]

    def nodes(self) -> tuple[Node, ...]:
        """Return all versions, oldest first."""
        return tuple(self._nodes.values())

    def extended(self, parent: Node, state: State) -> Node:
        """Add a version for a state derived from a node, and return it."""
        start = len(parent.state.trace)
        if len(state.trace) == start:
            return parent
        digest = self._numbered() if self._draft else _digest(parent, state.trace)
        with self._lock:
            node = self._nodes.setdefault(digest, Node(digest, parent.id, state, start))
            self._next[parent.id] = node.id
        return node

    def retarget(self, target: Target) -> None:
        """Let all versions be scheduled for another machine; ids and programs do not change."""
        with self._lock:
            for key, node in self._nodes.items():
                self._nodes[key] = replace(node, state=replace(node.state, target=target))
            self.root = self._nodes[self.root.id]

    def _numbered(self) -> str:
        return f"draft-{next(self._count)}"

    def remember(self, parent: Node, child: Node) -> None:
        """Record the version that a redo at the parent selects."""
        with self._lock:
            self._next[parent.id] = child.id

    def following(self, node: Node) -> Node | None:
        """Return the version that a redo selects."""
        following = self._next.get(node.id)
        return None if following is None else self._nodes[following]


def _digest(parent: Node, trace: Trace) -> str:
    """Return the digest of a node's steps and groups, and of those that a trace adds to them."""
    digest, start = parent.id, len(parent.state.trace)
    closed: dict[int, list[Group]] = {}
    for group in reversed(trace.groups):
        if group.first >= start:
            closed.setdefault(group.stop, []).append(group)
    for number in range(start, len(trace)):
        digest = _hashed(digest, step_json(trace[number]))
        for group in closed.get(number + 1, ()):
            digest = _hashed(digest, group_json(group))
    return digest


def _hashed(parent: str, data: Mapping[str, Json]) -> str:
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(f"{parent}\n{text}".encode()).hexdigest()


def _root_digest(root: State) -> str:
    """Return the digest of the names and structures of the functions at the root."""
    marks = [f"{name}:{structural_hash(f)}" for name, f in root.module.functions.items()]
    return hashlib.sha256("\n".join(marks).encode("utf-8", "surrogatepass")).hexdigest()
