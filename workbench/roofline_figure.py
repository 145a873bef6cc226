"""The picture of a roofline, as data of plotly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .protocol_runs import Roof
    from .roofline import Roofline, RooflinePoint

BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#6b6b6b"
"""Colors that remain distinct for color-blind readers and in print."""

DASHES: Final = ("solid", "dash", "dot")
"""The lines of the levels, from the memory inward."""


def traces(roofline: Roofline) -> list[dict[str, Any]]:
    """Return the roofs, the path, the measured kernels, and the predicted ones."""
    drawn = [*_roofs(roofline.roof, _range(roofline))]
    if roofline.path:
        drawn.append(_path(roofline.path))
    drawn.append(_measured(roofline.measured))
    if roofline.predicted:
        drawn.append(_predicted(roofline.predicted))
    return drawn


def layout(roofline: Roofline) -> dict[str, Any]:
    """Return the axes, the title, and the height of the roof as a note."""
    roof, (left, right) = roofline.roof, _range(roofline)
    note = f"{roof.gflops:.3g} GFLOP/s ({roof.instruction} on f32)"
    return {
        "title": {"text": roofline.title},
        "template": "plotly_white",
        "xaxis": {
            "type": "log", "range": [left, right], "title": {"text": "FLOP/byte of the arguments"},
        },
        "yaxis": {"type": "log", "title": {"text": "GFLOP/s"}},
        "annotations": [
            {
                "x": right, "y": math.log10(roof.gflops), "text": note, "showarrow": False,
                "xanchor": "right", "yanchor": "bottom",
            },
        ],
    }  # fmt: skip


def _range(roofline: Roofline) -> tuple[int, int]:
    """Return the powers of ten around all intensities and around the ends of all slopes."""
    roof = roofline.roof
    points = (*roofline.measured, *roofline.predicted, *roofline.path)
    values = [point.intensity for point in points]
    values += [roof.gflops / level.gbytes for level in roof.levels]
    low = math.floor(math.log10(min(values) / 2))
    return low, max(math.ceil(math.log10(max(values) * 2)), low + 1)


def _roofs(roof: Roof, limits: tuple[int, int]) -> list[dict[str, Any]]:
    left, right = (10.0**power for power in limits)
    found: list[dict[str, Any]] = []
    for index, level in enumerate(roof.levels):
        bend = min(right, max(left, roof.gflops / level.gbytes))
        at = [left, bend, right]
        dash = DASHES[min(len(roof.levels) - 1 - index, len(DASHES) - 1)]
        found.append(
            {
                "type": "scatter", "mode": "lines", "hoverinfo": "skip",
                "name": f"{level.name}: {level.gbytes:.3g} GB/s",
                "x": at, "y": [min(roof.gflops, x * level.gbytes) for x in at],
                "line": {"color": GRAY, "dash": dash},
            }
        )  # fmt: skip
    return found


def _points(points: Sequence[RooflinePoint], name: str, texts: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "scatter", "name": name, "hovertext": texts, "hoverinfo": "text",
        "x": [point.intensity for point in points], "y": [point.gflops for point in points],
    }  # fmt: skip


def _measured(points: Sequence[RooflinePoint]) -> dict[str, Any]:
    sizes = [8.0 + 10.0 * math.sqrt(point.share) for point in points]
    return {
        **_points(points, "measured", [_text(point, "measured") for point in points]),
        "mode": "markers+text",
        "text": [point.kernel for point in points],
        "textposition": "bottom center",
        "marker": {"color": BLUE, "symbol": "circle", "size": sizes},
    }


def _predicted(points: Sequence[RooflinePoint]) -> dict[str, Any]:
    return {
        **_points(points, "predicted", [_text(point, "predicted") for point in points]),
        "mode": "markers",
        "marker": {"color": BLUE, "symbol": "circle-open", "size": 10.0, "line": {"width": 2}},
    }


def _path(points: Sequence[RooflinePoint]) -> dict[str, Any]:
    texts = [_text(point, f"measured at version {point.state[:8]}") for point in points]
    return {
        **_points(points, f"{points[0].kernel} on this branch", texts),
        "mode": "lines+markers",
        "line": {"color": ORANGE},
        "marker": {"color": ORANGE, "symbol": "circle", "size": 6.0},
    }


def _text(point: RooflinePoint, source: str) -> str:
    text = f"{point.kernel}, {source}: {point.gflops:.3g} GFLOP/s"
    text += f" at {point.intensity:.3g} FLOP/byte"
    return text if point.roof is None else f"{text}, {point.roof:.0%} of the roof ({point.bound})"
