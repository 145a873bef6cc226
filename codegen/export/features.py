"""The processor features that an exported library checks when it is opened."""

from __future__ import annotations

from ...target.features import FAMILY_FEATURES, expanded
from ...target.target import Target
from .errors import ExportError
from .link import arch_of


def needed_features(target: Target) -> tuple[str, ...]:
    """Return the features that a target requires beyond the baseline of its processor family.

    For WebAssembly there are none: the engine validates the module.

    Raises
    ------
    ExportError
        If a library cannot detect a feature at run time.

    Examples
    --------
    >>> needed_features(Target("cpu", arch="aarch64", features=("dotprod",)))
    ('dotprod',)
    """
    arch = arch_of(target)
    if arch == "wasm32":
        return ()
    found, known = expanded(target.features), FAMILY_FEATURES[arch]
    undetectable = [f for f in found if f not in known]
    if undetectable:
        raise ExportError(
            f"a library cannot detect {', '.join(map(repr, undetectable))} on {arch}",
            hint=f"omit the feature; detectable features are {', '.join(known)}",
        )
    return found
