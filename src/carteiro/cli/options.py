"""The options that several commands share."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="Settings file, instead of carteiro.toml.")
]
StoreUrl: TypeAlias = Annotated[
    str | None, typer.Option("--store", help="Where messages live: sqlite:///FILE or memory://.")
]
ProviderName: TypeAlias = Annotated[
    str | None, typer.Option("--provider", help="Who takes e-mail over.")
]
