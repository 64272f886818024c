"""Times as they are shown."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=256)  # rows of one commit share a time, which a list repeats
def in_iso(moment: datetime) -> str:
    """The time in ISO 8601, with milliseconds and Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
