"""Times and durations as people read them: in their zone, in their language. Pure but for the table of zones."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from carteiro.console.words import ENGLISH

_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_SHORTEST = timedelta(seconds=1)


@lru_cache(maxsize=64)  # browsers name their zone with every request
def zone_of(name: str) -> tzinfo:
    """The zone with this name; UTC if it is unknown here."""
    if not _ZONE.fullmatch(name):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return UTC


def short(moment: datetime, zone: tzinfo, language: str, *, now: datetime) -> str:
    """The time of day if it is today, else day and time."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    if local.date() == today:
        return local.strftime("%H:%M:%S")
    day = "%Y-%m-%d" if language == ENGLISH else "%d/%m/%Y"
    return local.strftime(f"{day} %H:%M")


def day(local: datetime, language: str) -> str:
    """Day and month, for a chart."""
    return local.strftime("%m-%d" if language == ENGLISH else "%d/%m")


def exact(moment: datetime, zone: tzinfo) -> str:
    """The whole time, with milliseconds and zone."""
    local = moment.astimezone(zone)
    return f"{local.isoformat(sep=' ', timespec='milliseconds')} ({local.tzname()})"


def lasting(span: timedelta) -> str:
    """A duration: its two largest units, or milliseconds."""
    if abs(span) < _SHORTEST:
        return f"{span // timedelta(milliseconds=1)} ms"
    left, parts = int(abs(span).total_seconds()), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return ("-" if span < timedelta(0) else "") + " ".join(parts[:2])
