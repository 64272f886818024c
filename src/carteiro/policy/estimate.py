"""An estimate of when a waiting message is sent, from the attempts that its tenant was recently served.

Pure: the place in the queue and the number of attempts come from the store, ``now`` from the caller.

While jobs of a tenant wait, its attempts end as fast as it is served, whatever limits it: turns, weights, its cap or
its rate. So its rate is measured since its oldest waiting job became due, over at most the last five minutes. The
window is the time at this rate, shorter and longer by a factor: 1.25, as turns change, and more with few attempts or
few jobs before the message, which are a matter of chance.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from math import sqrt
from typing import Final, NamedTuple

from carteiro.model import ZERO, QueuePlace, StoredMessage
from carteiro.model.figures import Figures
from carteiro.policy.waiting import Estimate, Waiting, Why

MOST_AHEAD: Final = 10_000  # jobs that a store counts; this number means: or more
MOST_MINUTES: Final = 5
STEADY: Final = 1.25
DEVIATIONS: Final = 2  # standard deviations of a number of attempts
_MINUTE: Final = timedelta(minutes=1)
_HORIZON: Final = timedelta(hours=1)
_MOMENT: Final = timedelta(seconds=1)  # a rate over less says nothing
_CLAIMABLE: Final = {Why.TURN, Why.TENANT_AT_CAP, Why.TENANT_OUT_OF_TOKENS, Why.SEND_LIMIT}
_PARKED: Final = {Why.SCHEDULED, Why.RETRY, Why.PUT_BACK}


class _Rate(NamedTuple):
    """Attempts a second: at least, and at most; ``fastest`` None: not known, as nothing waited."""

    slowest: float
    fastest: float | None


def minutes_back(message: StoredMessage, place: QueuePlace, now: datetime) -> timedelta:
    """The whole minutes before the current one whose attempts `estimate` needs, besides those of the current one."""
    start, since = _minute(now), _waits_since(message, place, now)
    if since is None:
        return MOST_MINUTES * _MINUTE
    if since >= start:
        return ZERO
    return min(MOST_MINUTES, max(1, (start - since) // _MINUTE)) * _MINUTE


def attempts(figures: Figures) -> int:
    """The number of attempts that ended."""
    return sum(max(0, count) for name, count in figures.items() if name.startswith("ended."))


def estimate(  # noqa: PLR0913 - what is known of the message, and of what happened
    told: Waiting,
    message: StoredMessage,
    place: QueuePlace | None,
    *,
    ended: int,
    circuits: Collection[str],
    now: datetime,
) -> Estimate | None:
    """When the message is sent, if its tenant is served as it was; None for a finished one.

    ``ended``: attempts of its tenant since `minutes_back`. ``circuits``: providers whose circuit is open.
    """
    if told.why is Why.FINISHED:
        return None
    is_parked = told.why in _PARKED
    if place is None or not (is_parked or told.why in _CLAIMABLE):
        return Estimate("No estimate: see why it waits.")
    begin = max(now, told.until or now)
    ahead = min(MOST_AHEAD, place.ahead + place.parked_ahead)
    obstacle = _obstacle(begin - now, ended, circuits)
    if obstacle is not None:
        return Estimate(f"No estimate{obstacle}", begin, ahead=ahead)
    span = now - _minute(now) + minutes_back(message, place, now)
    rate = _rate(ended, span, _waits_since(message, place, now), now)
    earliest, slowest = _window(rate, place, now, begin, is_parked=is_parked)
    latest = None if ahead == MOST_AHEAD else slowest
    per_minute = round(ended * (_MINUTE / max(span, _MOMENT)), 1)
    said = _basis(span, per_minute, ahead)
    if latest is None or latest > message.expires_at:
        said += " It may expire before it is sent."
    return Estimate(said, earliest, latest, ahead, per_minute)


def _obstacle(wait: timedelta, ended: int, circuits: Collection[str]) -> str | None:
    """The reason why there is no estimate."""
    if circuits:
        return f": the circuit is open of {', '.join(sorted(circuits))}."
    if wait > _HORIZON:
        return " beyond the next hour: it is not sent before that time."
    if not ended:
        return ": no attempt of its tenant ended recently, so its rate is not known."
    return None


def _basis(span: timedelta, per_minute: float, ahead: int) -> str:
    """The figures that an estimate is made of."""
    minutes = max(1, round(span / _MINUTE))
    return (
        f"Estimate, if its tenant is served as in the last {minutes} min: {per_minute:g} attempts a minute,"
        f" {ahead:,}{' or more' if ahead == MOST_AHEAD else ''} jobs before it."
    )


def _rate(ended: int, span: timedelta, since: datetime | None, now: datetime) -> _Rate:
    factor = STEADY + DEVIATIONS / sqrt(ended)
    slowest = ended / max(span, _MOMENT).total_seconds() / factor
    if since is None:
        return _Rate(slowest, None)
    waited = min(span, now - since)
    return _Rate(slowest, ended / max(waited, _MOMENT).total_seconds() * factor)


def _window(
    rate: _Rate, place: QueuePlace, now: datetime, begin: datetime, *, is_parked: bool
) -> tuple[datetime, datetime]:
    """From the time at the highest rate to that at the lowest; jobs in flight end before it, too."""
    ready, parked = place.ahead + place.tenant_in_flight, place.parked_ahead
    wait = (begin - now).total_seconds() if is_parked else 0.0
    start = begin if is_parked else now
    longest = max(0.0, ready - rate.slowest * wait) + parked + 1
    latest = start + timedelta(seconds=(longest + DEVIATIONS * sqrt(longest)) / rate.slowest)
    if rate.fastest is None:
        return begin, latest
    shortest = max(0.0, ready + parked - rate.fastest * wait)
    few = max(0.0, shortest - DEVIATIONS * sqrt(shortest))
    earliest = start + timedelta(seconds=few / rate.fastest)
    return max(begin, earliest), max(begin, latest)


def _waits_since(message: StoredMessage, place: QueuePlace, now: datetime) -> datetime | None:
    """The time since which jobs of its tenant wait without a break; None: none waits."""
    own = message.due_at if place.parked_until is None and message.due_at <= now else None
    found = [each for each in (own, place.waits_since) if each is not None]
    return min(found, default=None)


def _minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)
