"""How fast a provider is called by all processes together: slower at once when it says so, faster again bit by bit.

Pure. One record a provider, in whole microseconds of the store's clock. Additive increase, multiplicative
decrease: the rate is halved when the provider throttles and climbs by a twentieth each second, up to its
ceiling. Without a ceiling it is lifted when it has climbed to twice as fast as where the provider throttled.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil, inf
from typing import NamedTuple

from carteiro.model import Drawn, ProviderRate, value
from carteiro.policy.pacing import Pace

ANY = inf  # a ceiling that is none
SLOWEST = 0.1  # a second; below it nobody would find out that the provider is well again
CUT_EVERY_US = 1_000_000  # throttled answers come in bursts: those of a second are one
LONGEST_STAY = timedelta(seconds=10)

_MICROSECOND = timedelta(microseconds=1)
_SECOND_US = 1_000_000
_TRIAL = timedelta(seconds=30)
_LONGEST_OPEN_US = 300 * _SECOND_US  # beyond it, it is the work of a clock that stepped back
_CUT = 0.5
_CLIMB = 0.05
_LIFTED_AT = 2.0


class Stay(NamedTuple):
    """Until when a process counts, and how many calls at once it may have by then."""

    until_us: int
    places: int = 0


class Trouble(NamedTuple):
    """Why a provider was left alone last, and until when whoever said so leaves it alone; the past: no more."""

    why: str
    at_us: int
    open_until_us: int


@value
class Rate:
    """What is known of a provider's pace.

    ``ceiling`` is as fast as it may ever be called, None: nobody knows. ``cut_to`` is how fast it was called
    after it throttled last, ``peak`` before, None: it is well. ``next_us`` is as in `Pace`. ``stays``: who
    calls it, in the order of their coming. ``trouble`` is the last it had, None: never any.
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
    """The record of a provider that nobody called yet."""
    return Rate(provider, stays={})


def rate_at(record: Rate, now_us: int) -> float | None:
    """How many calls a second may be made; None: as many as anybody likes."""
    if record.cut_to is None:
        return record.ceiling
    seconds = max(0, now_us - record.cut_at_us) // _SECOND_US
    risen = record.cut_to + seconds * _CLIMB * (record.ceiling or record.peak)
    if record.ceiling is not None:
        return min(risen, record.ceiling)
    return risen if risen < _LIFTED_AT * record.peak else None


def draw(  # noqa: PLR0913 - who draws, how much, and when
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
    """Draw up to ``count`` calls, no more than a fair share of a second's worth; the process counts for its stay.

    ``ceiling`` is what the process knows of one: `ANY` if there is none, None if it does not know. Of the
    places that ``concurrency`` makes it gets its share of those that nobody ``holds``; 0: any number.
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
    fair = max(1, ceil(rate / max(1, processes))) if places != 0 else 0
    granted = min(count, fair, pace.tokens(record.next_us, now_us))
    if granted:
        record = replace(record, next_us=pace.drawn(record.next_us, now_us, granted))
    has_more = pace.tokens(record.next_us, now_us) > 0
    wait_us = 0 if has_more else pace.wakes_at_us(record.next_us) - now_us
    return Drawn(granted, rate, wait_us * _MICROSECOND, processes, places), record


def _places(record: Rate, process: str, concurrency: int) -> int:
    """How many calls at once a process may have: an equal part, the first to come one more, of what others leave.

    What another holds it may be using: it is free when that one says so, or its stay ends.
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
    """The provider said that it is called too fast; ``going``: how fast it was, where no rate says so.

    Nothing is left to be drawn at this moment. Told again within a second, nothing changes.
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
    """The record as people see it."""
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
    """A process leaves the provider alone for so long; the trial after it may take a while."""
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
    """The process counts from now on; what a ceiling was is forgotten once nobody is left who knew it."""
    live = _live(record, now_us)
    ceiling = record.ceiling if live else None
    if stay_us:  # whoever is there keeps its rank
        live[process] = Stay(now_us + stay_us)
    else:
        live.pop(process, None)
    return replace(record, stays=live, ceiling=ceiling)


def _live(record: Rate, now_us: int) -> dict[str, Stay]:
    """Who counts now; an end that no stay can have is a clock's step back."""
    latest = now_us + LONGEST_STAY // _MICROSECOND
    return {name: stay for name, stay in record.stays.items() if now_us < stay.until_us <= latest}


def _righted(record: Rate, now_us: int) -> Rate:
    """A cut that lies ahead is a clock's step back: it was now. One that was made good for is over."""
    if record.cut_to is None:
        return record
    if rate_at(record, now_us) == record.ceiling:
        return replace(record, cut_to=None)
    return replace(record, cut_at_us=min(record.cut_at_us, now_us))
