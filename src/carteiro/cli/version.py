"""``carteiro version``."""

from importlib import metadata

import typer


def version() -> None:
    """Print the version."""
    typer.echo(f"carteiro {_installed()}")


def _installed() -> str:
    try:
        return metadata.version("carteiro")
    except metadata.PackageNotFoundError:  # run out of a source tree
        return "(not installed)"
