"""Existing names that are similar to a misspelled one, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from .errors import TilewrightError


class UnknownAttributeError(TilewrightError, AttributeError):
    """The name of a method or attribute that an object lacks; the message states a similar one."""

    title = "Unknown attribute"


def nearest(name: str, known: Iterable[str], *, count: int = 1) -> tuple[str, ...]:
    """Return the known names that are similar to a name, the most similar first.

    Upper and lower case, and underscores, count as equal.

    Parameters
    ----------
    name : str
        The name that does not exist.
    known : iterable of str
        The names that exist.
    count : int
        The maximum number of names to return.

    Examples
    --------
    >>> nearest("splitt", ["fuse", "split", "reorder"])
    ('split',)
    >>> nearest("StorageAlign", ["storage_align", "set_scope"])
    ('storage_align',)
    >>> nearest("x", ["fuse", "split"])
    ()
    """
    import difflib  # only for errors, so that `import tilewright` does not load it

    plain: dict[str, list[str]] = {}
    for other in known:
        plain.setdefault(_plain(other), []).append(other)
    close = difflib.get_close_matches(_plain(name), plain, n=count)
    return tuple(other for key in close for other in plain[key])[:count]


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the most similar name; empty if no name is similar.

    Examples
    --------
    >>> did_you_mean("factor", ["loop", "factors", "tail"])
    "did you mean 'factors'?"
    >>> did_you_mean("q", ["loop", "factors", "tail"])
    ''
    """
    near = nearest(name, known)
    return f"did you mean {near[0]!r}?" if near else ""


def listed(name: str, known: Iterable[str], *, limit: int = 12) -> str:
    """Return the known names as a list in text, the most similar first, shortened to a limit.

    Examples
    --------
    >>> listed("rorder", ["fuse", "split", "reorder"])
    'reorder, fuse, split'
    >>> listed("q", map(str, range(9)), limit=3), listed("q", [])
    ('0, 1, 2, ...', 'none')
    """
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    ordered = [*near, *(n for n in names if n not in near)]
    return (", ".join(ordered[:limit]) or "none") + (", ..." if len(ordered) > limit else "")


def missing_attribute(
    owner: object, name: str, known: Iterable[str] = (), *, hint: str = ""
) -> NoReturn:
    """Raise the error for an attribute that an object lacks, with the most similar one.

    Parameters
    ----------
    owner : object
        The object.
    name : str
        The name that it lacks.
    known : iterable of str
        The names that it has in addition to its public attributes.
    hint : str
        The equivalent of a name of another library; it replaces the similar name.

    Raises
    ------
    AttributeError
        Always; for a public name it is an :class:`UnknownAttributeError`.
    """
    kind = type(owner).__name__
    if name.startswith("_"):  # a protocol of Python or of IPython, not a misspelled name
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    public = (n for n in dir(type(owner)) if not n.startswith("_"))
    question = "" if hint else did_you_mean(name, sorted({*public, *known}))
    message = f"{kind} has no attribute {name!r}"
    raise UnknownAttributeError(
        f"{message}; {question}" if question else message,
        where=f"attributes of {kind}",
        hint=hint or f"help({kind}) lists the attributes",
    )
