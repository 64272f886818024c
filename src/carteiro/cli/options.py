"""The options that several commands share, and how moments and durations are written in them."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from carteiro.policy.lifecycle import MILLISECOND

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
_LONGEST = timedelta(days=36_500)
_SLOWEST, _FASTEST = 0.001, 100_000


def a_duration(text: str) -> timedelta:
    """``30s``, ``5m``, ``2h``, ``7d``, ``250ms``."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) > _LONGEST / _UNITS[found[2]]:
        raise typer.BadParameter(f"{text!r} is no duration: write it as 250ms, 30s, 5m, 2h or 7d")
    return int(found[1]) * _UNITS[found[2]]


def a_moment(text: str) -> datetime:
    """ISO 8601, in UTC unless it names an offset; or a duration: so long ago."""
    if _DURATION.fullmatch(text.strip()):
        return datetime.now(UTC) - a_duration(text)
    return a_time(text)


def a_time(text: str) -> datetime:
    """ISO 8601, in UTC unless it names an offset."""
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "write it as 2026-10-01T12:00:00Z; where the past is meant also as 2h: so long ago"
        raise typer.BadParameter(f"{text!r} is no moment: {hint}") from None


def a_rate(text: str) -> float:
    """So many a second."""
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not _SLOWEST <= rate <= _FASTEST:  # nor is what is no number
        raise typer.BadParameter(f"{text!r} is no rate: {_SLOWEST:g} to {_FASTEST} a second")
    return rate


def in_words(span: timedelta) -> str:
    """A duration as people read it: its two largest units."""
    left, parts = abs(span), []
    for name in ("d", "h", "m", "s"):
        count, left = divmod(left, _UNITS[name])
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts[:2]) or f"{abs(span) // MILLISECOND}ms"


ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="Settings file, instead of carteiro.toml.")
]
StoreUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Where messages live: sqlite:///FILE, postgresql://HOST/DATABASE or memory://.",
    ),
]
QueueUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--queue", help="Where whose turn it is is kept, if not in the store: redis://HOST/NUMBER."
    ),
]
ProviderName: TypeAlias = Annotated[
    str | None, typer.Option("--provider", help="Who takes e-mail over.")
]
Host: TypeAlias = Annotated[str | None, typer.Option("--host", help="The address to listen on.")]
Port: TypeAlias = Annotated[
    int | None, typer.Option("--port", help="The port; 0 is any that is free.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether I am sure.")]
OfTenant: TypeAlias = Annotated[
    str | None, typer.Option("--tenant", help="Of this tenant alone; without it, of all.")
]
TenantName: TypeAlias = Annotated[str, typer.Option("--tenant", help="Whose it is.")]
TenantArgument: TypeAlias = Annotated[str, typer.Argument(metavar="TENANT", help="Its name.")]
MessageArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The message.")]
Words: TypeAlias = Annotated[
    str | None, typer.Option("--text", help="The text; - reads it from stdin.")
]
Html: TypeAlias = Annotated[
    str | None, typer.Option("--html", help="The HTML; - reads it from stdin.")
]
TextFile: TypeAlias = Annotated[
    Path | None, typer.Option("--text-file", help="File with the text; - reads stdin.")
]
HtmlFile: TypeAlias = Annotated[
    Path | None, typer.Option("--html-file", help="File with the HTML; - reads stdin.")
]
Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", min=0, help="At most so many, the newest first; 0 is all.")
]
Since: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        "--since", parser=a_moment, metavar="TIME", help="From then on; 2h: two hours ago."
    ),
]
Before: TypeAlias = Annotated[
    datetime | None,
    typer.Option("--before", parser=a_moment, metavar="TIME", help="Before then; 7d: a week ago."),
]
