"""History of a schedule: a tree of content-addressed versions."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass

from ..ir.structural_hash import structural_hash
from .problem import ScheduleError
from .state import State
from .text import step_json
from .trace import TraceStep


@dataclass(frozen=True, slots=True, eq=False)
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
    """

    id: str
    parent: str | None
    state: State

    @property
    def step(self) -> TraceStep:
        """The last step.

        Raises
        ------
        ScheduleError
            If this is the root, which has no step.
        """
        if not len(self.state.trace):
            raise ScheduleError("the root of a history has no step")
        return self.state.trace[-1]


class History:
    """A thread-safe tree of versions."""

    def __init__(self, root: State) -> None:
        """Create the tree with its first version."""
        self._lock = threading.Lock()
        self.root = Node(_root_digest(root), None, root)
        self._nodes: dict[str, Node] = {self.root.id: self.root}
        self._next: dict[str, str] = {}

    def __getitem__(self, node: str) -> Node:
        """Return a version by its id or a unique prefix of it."""
        exact = self._nodes.get(node)
        found = [exact] if exact else [n for k, n in self._nodes.items() if k.startswith(node)]
        if len(found) != 1:
            raise ScheduleError(
                f"{len(found)} versions have an id with prefix {node!r}; expected exactly one",
                hint=f"the history has {len(self._nodes)} versions",
            )
        return found[0]

    def nodes(self) -> tuple[Node, ...]:
        """Return all versions, oldest first."""
        return tuple(self._nodes.values())

    def extended(self, parent: Node, state: State) -> Node:
        """Add a version for a state derived from a node, and return it."""
        steps = state.trace.steps[len(parent.state.trace) :]
        if not steps:
            return parent
        digest = parent.id
        for step in steps:
            digest = _digest(digest, step)
        with self._lock:
            node = self._nodes.setdefault(digest, Node(digest, parent.id, state))
            self._next[parent.id] = node.id
        return node

    def remember(self, parent: Node, child: Node) -> None:
        """Record the version that a redo at the parent selects."""
        with self._lock:
            self._next[parent.id] = child.id

    def following(self, node: Node) -> Node | None:
        """Return the version that a redo selects."""
        following = self._next.get(node.id)
        return None if following is None else self._nodes[following]


def _digest(parent: str, step: TraceStep) -> str:
    text = json.dumps(step_json(step), sort_keys=True)
    return hashlib.sha256(f"{parent}\n{text}".encode()).hexdigest()


def _root_digest(root: State) -> str:
    """Return the digest of the names and structures of the functions at the root."""
    marks = [f"{name}:{structural_hash(f)}" for name, f in root.module.functions.items()]
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()
