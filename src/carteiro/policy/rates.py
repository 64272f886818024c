"""Adaptive call rate of a provider, shared by all processes.

Pure. One record a provider, in whole microseconds of the store's clock. Additive increase, multiplicative
decrease: the rate is halved when the provider throttles, and rises by a twentieth each second, up to its
ceiling. Without a ceiling the limit ends at twice the rate at which the provider throttled.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil, inf
from typing import NamedTuple

from carteiro.model import Drawn, ProviderRate, value
from carteiro.policy.pacing import Pace

ANY = inf  # a ceiling without a limit
SLOWEST = 0.1  # a second; at a lower rate the recovery of the provider would not be noticed
CUT_EVERY_US = 1_000_000  # throttled answers come in bursts: those of one second count once
LONGEST_STAY = timedelta(seconds=10)

_MICROSECOND = timedelta(microseconds=1)
_SECOND_US = 1_000_000
_TRIAL = timedelta(seconds=30)
_LONGEST_OPEN_US = 300 * _SECOND_US  # a longer one is the result of a clock that stepped back
_LONGEST_LOCKED_US = _SECOND_US
_CUT = 0.5
_CLIMB = 0.05
_LIFTED_AT = 2.0


class Stay(NamedTuple):
    """Time until which a process counts, and its concurrent calls until then."""

    until_us: int
    places: int = 0


class Trouble(NamedTuple):
    """Why a circuit was last opened, and until when; a past time: closed again."""

    why: str
    at_us: int
    open_until_us: int


@value
class Rate:
    """Rate record of a provider.

    ``ceiling`` is the maximum rate, None: unknown. ``cut_to`` is the rate after the last throttling and ``peak``
    the rate before it, None: not throttled. ``next_us`` is as in `Pace`. ``stays``: the calling processes, in
    the order of arrival. ``trouble``: the last problem, None: none yet.
    """

    provider: str
    stays: Mapping[str, Stay]
    ceiling: float | None = None
    cut_to: float | None = None
    peak: float = 0.0
    cut_at_us: int = 0
    next_us: int = 0
    trouble: Trouble | None = None


def fresh(provider: str) -> Rate:
    """The record of a provider that was never called."""
    return Rate(provider, stays={})


def rate_at(record: Rate, now_us: int) -> float | None:
    """The allowed calls a second; None: no limit."""
    if record.cut_to is None:
        return record.ceiling
    seconds = max(0, now_us - record.cut_at_us) // _SECOND_US
    risen = record.cut_to + seconds * _CLIMB * (record.ceiling or record.peak)
    if record.ceiling is not None:
        return min(risen, record.ceiling)
    return risen if risen < _LIFTED_AT * record.peak else None


def draw(  # noqa: PLR0913 - all facts of a draw
    record: Rate,
    count: int,
    now_us: int,
    *,
    process: str,
    stay: timedelta,
    ceiling: float | None = None,
    concurrency: int = 0,
    holds: int = 0,
) -> tuple[Drawn, Rate]:
    """Draw up to ``count`` calls, at most a fair share of one second; the process counts for its stay.

    ``ceiling`` is the maximum known to the process: `ANY` if there is none, None if unknown. It gets its share
    of the places of ``concurrency`` that no process ``holds``; 0: no limit.
    """
    record = _announced(_righted(record, now_us), now_us, process, stay // _MICROSECOND)
    places = _places(record, process, concurrency) if concurrency else None
    record = _with_places(record, process, max(places or 0, holds))
    if ceiling is not None:
        record = replace(record, ceiling=None if ceiling == ANY else ceiling)
    rate = rate_at(record, now_us)
    processes = len(record.stays) if places is None else min(len(record.stays), concurrency)
    if rate is None:
        return Drawn(count, None, timedelta(0), processes, places), record
    pace = Pace.per_second(rate)
    now_us = _not_before(record.next_us - pace.burst_us - pace.interval_us, now_us)
    fair = max(1, ceil(rate / max(1, processes))) if places != 0 else 0
    granted = min(count, fair, pace.tokens(record.next_us, now_us))
    if granted:
        record = replace(record, next_us=pace.drawn(record.next_us, now_us, granted))
    has_more = pace.tokens(record.next_us, now_us) > 0
    wait_us = 0 if has_more else pace.wakes_at_us(record.next_us) - now_us
    return Drawn(granted, rate, wait_us * _MICROSECOND, processes, places), record


def _not_before(drawn_us: int, now_us: int) -> int:
    """The time of a draw, not before the last one: a caller may have read the clock, and then waited for the lock."""
    return drawn_us if now_us < drawn_us <= now_us + _LONGEST_LOCKED_US else now_us


def _places(record: Rate, process: str, concurrency: int) -> int:
    """Concurrent calls of a process: an equal share, one more for the first ones, of the free places.

    A place that another process holds may be in use: it is free when that process says so, or its stay ends.
    """
    if process not in record.stays:
        return 0
    rank = list(record.stays).index(process)
    share, rest = divmod(concurrency, len(record.stays))
    held = sum(each.places for name, each in record.stays.items() if name != process)
    return max(0, min(share + (rank < rest), concurrency - held))


def _with_places(record: Rate, process: str, places: int) -> Rate:
    stay = record.stays.get(process)
    if stay is None or stay.places == places:
        return record
    return replace(record, stays={**record.stays, process: stay._replace(places=places)})


def throttled(record: Rate, now_us: int, *, going: float) -> Rate:
    """The provider throttled; ``going`` is the measured rate, used if there is no rate yet.

    Nothing can be drawn at this moment. A repetition within a second changes nothing.
    """
    record = _righted(record, now_us)
    if record.cut_to is not None and now_us - record.cut_at_us < CUT_EVERY_US:
        return record
    peak = rate_at(record, now_us) or max(going, SLOWEST)
    cut_to = max(_CUT * peak, min(SLOWEST, peak))
    pace = Pace.per_second(cut_to)
    next_us = now_us + pace.burst_us + pace.interval_us
    return replace(record, cut_to=cut_to, peak=peak, cut_at_us=now_us, next_us=next_us)


def shown(record: Rate, now_us: int) -> ProviderRate:
    """The record as users see it."""
    trouble = record.trouble
    return ProviderRate(
        record.provider,
        rate_at(record, now_us),
        record.ceiling,
        len(_live(record, now_us)),
        is_open=trouble is not None and now_us < trouble.open_until_us <= now_us + _LONGEST_OPEN_US,
        trouble=None if trouble is None else trouble.why,
        trouble_at=None if trouble is None else _at(trouble.at_us),
    )


def left_alone(record: Rate, now_us: int, *, wait: timedelta, why: str) -> Rate:
    """A process opened the circuit for ``wait``; the trial call after it may take a while."""
    open_us = min((wait + _TRIAL) // _MICROSECOND, _LONGEST_OPEN_US)
    return replace(record, trouble=Trouble(why, now_us, now_us + open_us))


def healed(record: Rate) -> Rate:
    """The provider answers again."""
    if record.trouble is None:
        return record
    return replace(record, trouble=record.trouble._replace(open_until_us=0))


def _at(moment_us: int) -> datetime:
    return datetime.fromtimestamp(moment_us / _SECOND_US, UTC)


def _announced(record: Rate, now_us: int, process: str, stay_us: int) -> Rate:
    """The process counts from now on; a ceiling is forgotten once no process that knew it is left."""
    live = _live(record, now_us)
    ceiling = record.ceiling if live else None
    if stay_us:  # a known process keeps its rank
        live[process] = Stay(now_us + stay_us)
    else:
        live.pop(process, None)
    return replace(record, stays=live, ceiling=ceiling)


def _live(record: Rate, now_us: int) -> dict[str, Stay]:
    """The processes that count now; an end too far ahead comes from a clock that stepped back."""
    latest = now_us + LONGEST_STAY // _MICROSECOND
    return {name: stay for name, stay in record.stays.items() if now_us < stay.until_us <= latest}


def _righted(record: Rate, now_us: int) -> Rate:
    """A cut in the future comes from a clock that stepped back: it counts as now. A recovered one is removed."""
    if record.cut_to is None:
        return record
    if rate_at(record, now_us) == record.ceiling:
        return replace(record, cut_to=None)
    return replace(record, cut_at_us=min(record.cut_at_us, now_us))
