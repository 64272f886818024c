"""Templates of pages: every value is escaped, and an unknown name is an error."""

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from carteiro.console import charts
from carteiro.console.assets import address_of
from carteiro.console.words import LANGUAGES

ROOT: Final = "/console"


@cache
def environment() -> Environment:
    """The templates, compiled on first use."""
    made = Environment(
        loader=PackageLoader("carteiro.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {
        "root": ROOT,
        "asset": lambda name: f"{ROOT}/{address_of(name)}",
        "languages": LANGUAGES,
        "line_chart": charts.line,
        "bar_chart": charts.bars,
        "sparkline": charts.sparkline,
        "progress_bar": charts.progress,
    }
    return made
