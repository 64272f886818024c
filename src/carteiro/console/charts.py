"""Charts as SVG: drawn here, with a title for those who do not see them, coloured by the stylesheet. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup, escape

from carteiro.model import value

WIDTH: Final = 640
HEIGHT: Final = 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 10, 22
_GRID_LINES = 4
_NICE = (1.2, 2, 4, 8, 12)  # a quarter of them, or of ten times them, is whole
_MOST_LABELS = 7


@value
class Series:
    """A line of a chart: its name, its values (None is a gap), and the number of its colour, from 1 on."""

    name: str
    values: tuple[float | None, ...]
    colour: int = 1


def line(
    title: str, labels: Sequence[str], series: Sequence[Series], *, filled: bool = False
) -> Markup:
    """Lines over time, with a grid; ``filled``: areas. Each line has a class, and its name in the legend."""
    top = _nice_top(max((v for each in series for v in each.values if v is not None), default=0))
    count = max((len(each.values) for each in series), default=0)
    parts = [_grid(top), _labels(labels)]
    for each in series:
        for run in _runs(each.values):
            points = [(_x(at, count), _y(v, top)) for at, v in run]
            path = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
            if filled:
                base = _y(0, top)
                area = f"M{points[0][0]:.1f},{base:.1f}L{path}L{points[-1][0]:.1f},{base:.1f}Z"
                parts.append(f'<path class="area c{each.colour}" d="{area}"/>')
            if len(points) == 1:
                x, y = points[0]
                parts.append(
                    f'<circle class="dot c{each.colour}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
                )
            else:
                parts.append(f'<path class="line c{each.colour}" d="M{path}"/>')
    return _svg(title, parts, "chart") + _legend(series)


def bars(title: str, labels: Sequence[str], values: Sequence[float], *, colour: int = 1) -> Markup:
    """A bar for each value, with its label and its value as a tooltip."""
    top = _nice_top(max(values, default=0))
    width = (WIDTH - _LEFT - _RIGHT) / max(1, len(values))
    parts = [_grid(top), _labels(labels)]
    for at, (label, each) in enumerate(zip(labels, values, strict=True)):
        y = _y(each, top)
        parts.append(
            f'<rect class="bar c{colour}" x="{_LEFT + at * width + width * 0.1:.1f}" y="{y:.1f}" '
            f'width="{width * 0.8:.1f}" height="{max(0.0, _y(0, top) - y):.1f}">'
            f"<title>{escape(label)}: {each:g}</title></rect>"
        )
    return _svg(title, parts, "chart")


def sparkline(title: str, values: Sequence[float | None], *, colour: int = 1) -> Markup:
    """A small line without axes, for a row or a tile."""
    top = max((each for each in values if each is not None), default=0) or 1
    count = max(2, len(values))
    drawn = "".join(
        '<path class="line c{}" d="M{}"/>'.format(
            colour,
            "L".join(f"{at * 120 / (count - 1):.1f},{30 - 28 * v / top:.1f}" for at, v in run),
        )
        for run in _runs(values)
    )
    return Markup(  # noqa: S704 - numbers, and a title that is escaped
        '<svg class="sparkline" viewBox="0 0 120 32" role="img" preserveAspectRatio="none">'
        f"<title>{escape(title)}</title>{drawn}</svg>"
    )


def progress(title: str, total: float, parts: Sequence[tuple[float, int]]) -> Markup:
    """One bar of several parts, each a number and its colour; the rest of ``total`` stays empty."""
    whole = max(1.0, total, sum(number for number, _ in parts))
    drawn, x = "", 0.0
    for number, colour in parts:
        width = WIDTH * number / whole
        drawn += f'<rect class="bar c{colour}" x="{x:.1f}" width="{width:.1f}" height="8"/>'
        x += width
    return Markup(  # noqa: S704 - as above
        f'<svg class="progress" viewBox="0 0 {WIDTH} 8" role="img" preserveAspectRatio="none">'
        f"<title>{escape(title)}</title>{drawn}</svg>"
    )


def _svg(title: str, parts: Sequence[str], kind: str) -> Markup:
    return Markup(  # noqa: S704 - numbers, and texts that are escaped
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _legend(series: Sequence[Series]) -> Markup:
    rows = "".join(
        f'<li><span class="swatch c{each.colour}"></span>{escape(each.name)}</li>'
        for each in series
    )
    return Markup(f'<ul class="legend">{rows}</ul>')  # noqa: S704 - as above


def _grid(top: float) -> str:
    lines = []
    for step in range(_GRID_LINES + 1):
        at = top * step / _GRID_LINES
        y = _y(at, top)
        lines.append(
            f'<path class="grid" d="M{_LEFT},{y:.1f}H{WIDTH - _RIGHT}"/>'
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_brief(at)}</text>'
        )
    return "".join(lines)


def _labels(labels: Sequence[str]) -> str:
    every = max(1, -(-len(labels) // _MOST_LABELS))
    return "".join(
        f'<text class="tick" x="{_x(at, len(labels)):.1f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(label)}</text>'
        for at, label in enumerate(labels)
        if at % every == every // 2
    )


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The values between gaps, each with its place."""
    known = [(at, v) for at, v in enumerate(values) if v is not None]
    runs: list[list[tuple[int, float]]] = [known[:1]] if known else []
    for (before, _), (at, v) in pairwise(known):
        if at == before + 1:
            runs[-1].append((at, v))
        else:
            runs.append([(at, v)])
    return runs


def _x(at: int, count: int) -> float:
    return _LEFT + (at + 0.5) * (WIDTH - _LEFT - _RIGHT) / max(1, count)


def _y(at: float, top: float) -> float:
    return HEIGHT - _BOTTOM - at * (HEIGHT - _TOP - _BOTTOM) / top


def _nice_top(largest: float) -> float:
    """The next number that people like to read, at least 4: a grid of counts has no fractions."""
    top = max(largest, float(_GRID_LINES))
    size = 10.0 ** (len(str(int(top))) - 1)
    return next(each * size for each in _NICE if each * size >= top)


def _brief(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"
