"""The checks of the compiler, each of which can be disabled.

- A *requirement* of a primitive: its problems are filtered.
- A *rule* of well-formed programs: its violations are not reported.
- An *obligation* of the in-bounds query: parts of a kind and status are not reported, so a part
  that needs a check at entry gets none.
- A *refusal* of the compiler: the ``raise`` statement of a named error in lowering is removed.
- A *call check*: run-time checks of a kind are not compiled.

`hooked` calls a function with the key of each check that rejects something, and the check has no
effect where that function returns True.
"""

from __future__ import annotations

import ast
import inspect
import sys
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from unittest import mock

import tilewright
from tilewright.codegen.lower.host.context import HostContext
from tilewright.codegen.lower.host.to_thread import CODE_CHECK
from tilewright.codegen.manifest import SiteKind
from tilewright.codegen.rtlib import layout
from tilewright.codegen.runtime import explain as explanations
from tilewright.codegen.runtime.outputs import Outputs
from tilewright.errors import TilewrightError
from tilewright.ir import verify
from tilewright.ir.analysis import entry_checks
from tilewright.ir.analysis.bounds import Status, with_kernel_checks
from tilewright.ir.graph import rules as graph_rules
from tilewright.ir.loop import rules as loop_rules, verify as loop_verify
from tilewright.ir.violations import Collector
from tilewright.schedules import allocations
from tilewright.schedules.apply import Primitive
from tilewright.schedules.registry import primitives
from tilewright.schedules.requirement import CommonRequirement
from tilewright.schedules.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FunctionType, ModuleType

    from tilewright.schedules.requirement import Requirement

    Noticed = Callable[..., bool]
    """A function of a key, and of the step and state of a requirement."""

ROOT = Path(tilewright.__file__).parent
LOWERING = ("codegen/lower", "schedules/launch")
"""The folders whose refusals are disabled."""

COMMON = "step"
"""The first part of the keys of requirements of all steps."""

IN_KERNEL = "access, checked in the kernel"
"""The key of the checks of accesses that are neither proved nor checked at entry."""

NOTICE = "__notice__"


def requirement_key(cls: type[Primitive], requirement: Requirement) -> str:
    """Return the key of a requirement, as in ``split.serial``."""
    own = isinstance(requirement, cls.Requires)
    return f"{cls.verb() if own else COMMON}.{requirement.key}"


def requirements() -> list[str]:
    """Return the keys of all requirements."""
    own = [requirement_key(cls, r) for cls in primitives() for r in cls.Requires]
    return [*own, *(f"{COMMON}.{r.key}" for r in CommonRequirement)]


def rules() -> list[str]:
    """Return the keys of all rules of well-formed programs."""
    return [_rule_key(r) for r in (*loop_rules.RULES, *graph_rules.RULES)]


def obligations() -> list[str]:
    """Return the keys of the answers of the in-bounds query."""
    kinds, statuses = get_args(entry_checks.Kind), get_args(Status)
    found = [_obligation_key(k, s) for k in kinds for s in statuses if s != "proved"]
    return [IN_KERNEL if key == _obligation_key("access", "unknown") else key for key in found]


def refusals() -> list[str]:
    """Return the keys of the named errors that lowering raises."""
    return [key for path in _sources() for key in _sites(path)]


def calls() -> list[str]:
    """Return the keys of the checks at run time."""
    return [_call_key(kind) for kind in get_args(SiteKind)]


def keys() -> dict[str, list[str]]:
    """Return the keys of all checks, by kind."""
    return {
        "requirements": requirements(),
        "rules": rules(),
        "obligations": obligations(),
        "refusals": refusals(),
        "calls": calls(),
    }


@contextmanager
def hooked(noticed: Noticed) -> Iterator[None]:
    """Call a function with the key of each check that rejects something.

    The check has no effect where the function returns True.
    """
    with ExitStack() as stack:
        for context in (_steps, _rules, _obligations, _refusals, _calls):
            context(noticed, stack)
        yield


@contextmanager
def disabled(key: str) -> Iterator[None]:
    """Disable one check."""
    with hooked(lambda found, *_: found == key):
        yield


def _steps(noticed: Noticed, stack: ExitStack) -> None:
    """Filter the problems of all steps."""

    def filtering(cls: type, phase: str, *, on_step: bool) -> Any:
        original = getattr(cls, phase)

        def filtered(self: Any, other: Any) -> Iterator[Any]:
            step, state = (self, other) if on_step else (other, self)
            for problem in original(self, other):
                if not noticed(requirement_key(type(step), problem.requirement), step, state):
                    yield problem

        return mock.patch.object(cls, phase, filtered)

    phases = ("structural", "proofs")
    patches = [filtering(c, p, on_step=True) for c in primitives() for p in phases]
    patches += [filtering(Primitive, p, on_step=True) for p in ("outcome", "same_block")]
    patches += [filtering(State, p, on_step=False) for p in ("missing", "enclosed")]
    obstacle = allocations._obstacle

    def filtered_obstacle(*args: Any) -> Any:
        found = obstacle(*args)
        allocated = f"{COMMON}.{CommonRequirement.ALLOCATED.key}"
        return None if found is None or noticed(allocated) else found

    patches.append(mock.patch.object(allocations, "_obstacle", filtered_obstacle))
    for patch in patches:
        stack.enter_context(patch)


def _rule_key(rule: Any) -> str:
    return f"{rule.number} {rule.name}"


def _rules(noticed: Noticed, stack: ExitStack) -> None:
    """Filter the violations of all rules."""
    report, of_module = Collector.report, verify.module_violations

    def filtered(self: Collector, rule: Any, *args: Any, **kwargs: Any) -> None:
        if not noticed(_rule_key(rule)):
            report(self, rule, *args, **kwargs)

    def kept(module: Any) -> tuple[Any, ...]:
        whole = (graph_rules.MODULE, graph_rules.RECURSION)
        found = of_module(module)
        return tuple(v for v in found if v.rule not in whole or not noticed(_rule_key(v.rule)))

    stack.enter_context(mock.patch.object(Collector, "report", filtered))
    stack.enter_context(mock.patch.object(verify, "module_violations", kept))
    stack.enter_context(mock.patch.object(loop_verify, "_VERIFIED", set[tuple[str, str]]()))


def _obligation_key(kind: str, status: str) -> str:
    return f"{kind}, {status}"


def _obligations(noticed: Noticed, stack: ExitStack) -> None:
    """Filter the obligations of functions, in every module that imports the query."""
    original, in_kernel = entry_checks.obligations, with_kernel_checks

    def filtered(func: Any) -> tuple[Any, ...]:
        return tuple(o for o in original(func) if not noticed(_obligation_key(o.kind, o.status)))

    def checked(func: Any) -> Any:
        new = in_kernel(func)
        return func if new is not func and noticed(IN_KERNEL) else new

    _replace(original, filtered, stack)
    _replace(in_kernel, checked, stack)


def _replace(original: Callable[..., Any], new: Callable[..., Any], stack: ExitStack) -> None:
    """Replace a function in every module that imports it."""
    name, packages = original.__name__, ("tilewright.", "tests.")
    for path, module in list(sys.modules.items()):
        if path.startswith(packages) and getattr(module, name, None) is original:
            stack.enter_context(mock.patch.object(module, name, new))


def _call_key(kind: str) -> str:
    return f"call: {kind}"


def _calls(noticed: Noticed, stack: ExitStack) -> None:
    """Omit checks at run time, whose failure is noticed where it is explained."""
    guard, error_of_output = HostContext.guard, Outputs.error

    def guarded(self: HostContext, condition: Any, site: Any, *numbers: Any) -> None:
        if not noticed(_call_key(site.kind), None):
            guard(self, condition, site, *numbers)

    def explained(function: Callable[..., Any]) -> Callable[..., Any]:
        def explaining(spec: Any, code: int, record: Any, *rest: Any) -> Any:
            if code == CODE_CHECK:
                noticed(_call_key(spec.sites[record[layout.CALL_SITE // 8]].kind))
            return function(spec, code, record, *rest)

        return explaining

    def unfit(self: Outputs, site: Any) -> Any:
        noticed(_call_key(site.kind))
        return error_of_output(self, site)

    stack.enter_context(mock.patch.object(HostContext, "guard", guarded))
    stack.enter_context(mock.patch.object(Outputs, "error", unfit))
    for function in (explanations.explain, explanations.failed_launch):
        _replace(function, explained(function), stack)


@cache
def _sources() -> tuple[str, ...]:
    """Return the files that may contain refusals, relative to the package."""
    found = (path for folder in LOWERING for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(p.relative_to(ROOT).as_posix() for p in found))


@cache
def _text(path: str) -> str:
    """Return the text of a file at the start, from which its module was imported."""
    return (ROOT / path).read_text()


def _module(path: str) -> ModuleType:
    return import_module("tilewright." + path.removesuffix(".py").replace("/", "."))


@cache
def _sites(path: str) -> dict[str, int]:
    """Return the lines of the ``raise`` statements of named errors in a file, by key.

    Internal errors, which no program can cause, are not refusals.
    """
    text, found = _text(path), {}
    if "raise " not in text:
        return {}
    module = vars(_module(path))
    for function, node in _raises(ast.parse(text)):
        name = getattr(getattr(node.exc, "func", None), "id", "")
        error = module.get(name)
        if not (inspect.isclass(error) and issubclass(error, TilewrightError)):
            continue
        if error.__name__ == "MalformedProgramError":
            continue
        same = sum(key.startswith(f"{path}:{function} {name}") for key in found)
        found[f"{path}:{function} {name}" + (f" {same + 1}" if same else "")] = node.lineno
    return found


def _raises(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Raise]]:
    """Yield the ``raise`` statements below a node, with the name of the function around each."""
    for node in ast.iter_child_nodes(tree):
        inner = function
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.Raise):
            yield function, node
        yield from _raises(node, inner)


class _Guarding(ast.NodeTransformer):
    """Precede each refusal by a call of the notice function, which may skip it."""

    def __init__(self, lines: dict[int, str]) -> None:
        self.lines = lines

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        key = self.lines.get(node.lineno)
        if key is None:
            return node
        call = ast.parse(f"if not {NOTICE}({key!r}): pass").body[0]
        call.body = [node]
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _refusals(noticed: Noticed, stack: ExitStack) -> None:
    """Replace the code of all functions that contain refusals."""
    for path in _sources():
        changed = _guarded(path)
        if not changed:
            continue
        module = _module(path)
        stack.enter_context(mock.patch.dict(vars(module), {NOTICE: noticed}))
        for function in _functions(module):
            new = changed.get(function.__code__.co_qualname)
            if new is not None and new.co_freevars == function.__code__.co_freevars:
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = new


@cache
def _guarded(path: str) -> dict[str, CodeType]:
    """Return the code of the functions of a file that contain refusals, by qualified name."""
    lines = {line: key for key, line in _sites(path).items()}
    if not lines:
        return {}
    tree = _Guarding(lines).visit(ast.parse(_text(path)))
    code = compile(tree, str(ROOT / path), "exec", dont_inherit=True, flags=_future(path))
    return {c.co_qualname: c for c in _codes(code) if NOTICE in c.co_names}


def _future(path: str) -> int:
    import __future__

    text = _text(path)
    return __future__.annotations.compiler_flag if "import annotations" in text else 0


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions and methods that a module defines, without their decorators."""
    for value in list(vars(module).values()):
        for member in vars(value).values() if inspect.isclass(value) else (value,):
            plain = getattr(member, "fget", None) or getattr(member, "__func__", member)
            plain = inspect.unwrap(plain) if callable(plain) else plain
            if inspect.isfunction(plain) and plain.__module__ == module.__name__:
                yield plain
