"""The pace of a provider as stores keep it: the columns of a row."""

from collections.abc import Sequence
from typing import Any

import orjson

from carteiro.policy.rates import Rate, Stay, Trouble


def rate_of(row: Sequence[Any]) -> Rate:
    """The record in a row."""
    provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble = row
    return Rate(
        provider=provider,
        ceiling=ceiling,
        cut_to=cut_to,
        peak=peak,
        cut_at_us=cut_at_us,
        next_us=next_us,
        stays={name: Stay(*told) for name, told in orjson.loads(stays).items()},
        trouble=None if trouble is None else Trouble(*orjson.loads(trouble)),
    )


def columns_of(record: Rate) -> dict[str, object]:
    """The row of a record, by column."""
    trouble = None if record.trouble is None else orjson.dumps(tuple(record.trouble)).decode()
    return {
        "provider": record.provider,
        "ceiling": record.ceiling,
        "cut_to": record.cut_to,
        "peak": record.peak,
        "cut_at_us": record.cut_at_us,
        "next_us": record.next_us,
        "stays": orjson.dumps({name: tuple(stay) for name, stay in record.stays.items()}).decode(),
        "trouble": trouble,
    }
