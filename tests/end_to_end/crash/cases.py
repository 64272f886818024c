"""The cases that run on each store.

Everything runs on a file, and on a server the operations that it does differently. With a separate queue, a ledger
does the same inside its transactions as without one: there, the steps between the two are tested, and trouble with
the queue (``test_queue_trouble``). ``make prove STORE=redis+postgres`` tests everything there too.
"""

from collections.abc import Sequence
from typing import Any

import pytest


def cases(
    *,
    sqlite: Sequence[Any] = (),
    postgres: Sequence[Any] = (),
    redis_sqlite: Sequence[Any] = (),
    redis_postgres: Sequence[Any] = (),
) -> list[Any]:
    """For ``parametrize(("place", …), …, indirect=["place"])``."""
    chosen = {
        "sqlite": sqlite,
        "postgres": postgres,
        "redis+sqlite": redis_sqlite,
        "redis+postgres": redis_postgres,
    }
    return [
        pytest.param(store, each, id=f"{store}-{each}")
        for store, those in chosen.items()
        for each in those
    ]
