"""Which cases run on which store: everything on a file, and on a server what it does in its own way."""

from collections.abc import Sequence
from typing import Any

import pytest


def cases(*, sqlite: Sequence[Any], postgres: Sequence[Any]) -> list[Any]:
    """For ``parametrize(("place", …), …, indirect=["place"])``."""
    chosen = [("sqlite", each) for each in sqlite] + [("postgres", each) for each in postgres]
    return [pytest.param(store, each, id=f"{store}-{each}") for store, each in chosen]
