"""Named sets of sizes, for which a program is measured one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import TilewrightError
from ..ir.module import Function
from .inputs import shapes_text
from .measurement_records import MeasurementRecords
from .protocol_runs import SizeSet
from .render import Samples
from .symbols import checked_sample, symbols_of

MAX_NAME = 40
MAX_SETS = 16


class SizeSetError(TilewrightError):
    """A set of sizes without a valid name, or one that does not exist."""

    title = "Invalid set of sizes"


@dataclass(frozen=True, slots=True)
class SizeSets:
    """The sizes of each set by its name, in the order in which they were added."""

    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])

    def added(self, name: str, sizes: Mapping[str, int], function: Function) -> SizeSets:
        """Return the sets with one more, or with other sizes of the one with this name.

        Raises
        ------
        SizeSetError
            If the name is empty or too long, if there are too many sets, or if no size is given.
        SampleError
            If the function has no such symbol, or if its range excludes a size.
        """
        name = name.strip()
        if not 0 < len(name) <= MAX_NAME:
            raise SizeSetError(
                f"the name has {len(name)} characters; expected 1 to {MAX_NAME}",
                hint="type a name, such as 'long prompts'",
            )
        if name not in self.sizes and len(self.sizes) >= MAX_SETS:
            raise SizeSetError(f"there are {MAX_SETS} sets", hint="remove one of them")
        if not sizes:
            raise SizeSetError("the set contains no sizes", hint="all sizes may be constant")
        checked = {symbol: checked_sample(function, symbol, v) for symbol, v in sizes.items()}
        return SizeSets({**self.sizes, name: checked})

    def removed(self, name: str) -> SizeSets:
        """Return the sets without one."""
        self.of(name)
        return SizeSets({other: v for other, v in self.sizes.items() if other != name})

    def of(self, name: str) -> Mapping[str, int]:
        """Return the sizes of a set.

        Raises
        ------
        SizeSetError
            If there is no such set.
        """
        if name not in self.sizes:
            raise SizeSetError(
                f"no set {name!r}", hint=f"the sets are {', '.join(self.sizes) or 'none'}"
            )
        return self.sizes[name]

    def chosen(self, name: str, function: Function) -> dict[tuple[str, str], int]:
        """Return the sample values of a set for the symbols that the function has."""
        sizes, symbols = self.of(name), {symbol.name for symbol in symbols_of(function)}
        return {(function.name, s): value for s, value in sizes.items() if s in symbols}

    def view(
        self, function: Function, samples: Samples, records: MeasurementRecords, state: str
    ) -> list[SizeSet]:
        """Return the sets with their times at a state, for the browser."""
        found: list[SizeSet] = []
        for name in self.sizes:
            chosen = {s: value for (_, s), value in self.chosen(name, function).items()}
            text = shapes_text({**samples, **chosen})
            time = records.time(state, function.name, text)
            current = {**samples, **chosen} == dict(samples)
            found.append(SizeSet(name, text, time, current=current))
        return found
