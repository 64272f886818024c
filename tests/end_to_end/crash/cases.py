"""Which cases run on which store.

Everything runs on a file, and on a server what it does in its own way. With a queue beside it, a ledger does
inside its transactions what it does without one: there, what happens between the two is tried, and what happens to
the queue (``test_queue_trouble``). ``make prove STORE=redis+postgres`` tries everything there too.
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
