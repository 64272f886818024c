"""``carteiro version``."""

from importlib import metadata

import typer

from carteiro.cli.options import AsJson
from carteiro.cli.printing import Printer


def version(*, as_json: AsJson = False) -> None:
    """Print the version."""
    Printer(as_json=as_json).answer({"version": installed()}, f"carteiro {installed()}")


def version_and_end(is_wanted: bool) -> None:  # noqa: FBT001 - as Typer calls it
    """Print the version and exit, if the flag is given."""
    if is_wanted:
        version(as_json=False)
        raise typer.Exit


def installed() -> str:
    """The version that is installed."""
    try:
        return metadata.version("carteiro")
    except metadata.PackageNotFoundError:  # run from a source tree
        return "(not installed)"
