"""Charts: they have a title for those who do not see them, and draw what is given, gaps included."""

import re

from carteiro.console import charts
from carteiro.console.charts import Series

HOSTILE = '<script>"&'


def test_texts_in_charts_are_escaped() -> None:
    """Titles, labels and names may be a tenant's."""
    drawn = [
        charts.line(HOSTILE, [HOSTILE], [Series(HOSTILE, (1,))]),
        charts.bars(HOSTILE, [HOSTILE], [1]),
        charts.sparkline(HOSTILE, [1, 2]),
    ]

    for each in drawn:
        assert "<script" not in each
        assert each.count("&lt;script&gt;") >= 1
        assert 'role="img"' in each
        assert "style=" not in each  # the CSP forbids it


def test_line_breaks_at_a_gap() -> None:
    """A value that is unknown is not 0."""
    drawn = charts.line("t", ["a"] * 5, [Series("s", (1, 2, None, 3, 4))])

    assert drawn.count('class="line c1"') == 2


def test_chart_without_values_is_drawn() -> None:
    """A new installation has none."""
    assert "<svg" in charts.line("t", [], [])
    assert "<svg" in charts.bars("t", [], [])
    assert "<svg" in charts.sparkline("t", [])


def test_highest_value_is_below_the_top_of_the_grid() -> None:
    """And the top is a number that people like to read."""
    for largest in (0, 1, 4, 5, 99, 1234, 9_999_999):
        drawn = charts.bars("t", ["a"], [largest])
        top = re.findall(r"text-anchor=.end.>([\d.]+)([kMG]?)<", drawn)[-1]
        size = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[top[1]]
        assert float(top[0]) * size >= largest
