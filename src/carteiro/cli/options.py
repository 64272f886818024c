"""Options that several commands share, and the formats of times and durations."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from carteiro.model import MILLISECOND
from carteiro.policy.retry import PRESETS

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
        raise typer.BadParameter(
            f"{text!r} is not a duration: write it as 250ms, 30s, 5m, 2h or 7d"
        )
    return int(found[1]) * _UNITS[found[2]]


def a_life(text: str) -> timedelta:
    """A duration after which something ends, and so not 0."""
    if not (span := a_duration(text)):
        raise typer.BadParameter(f"{text!r} is over at once: name a time after which it expires")
    return span


def duration(says: str, *, parser: Callable[[str], timedelta] = a_duration) -> object:
    """An option that takes a duration."""
    return typer.Option(parser=parser, metavar="DURATION", help=says)


def a_moment(text: str) -> datetime:
    """ISO 8601, in UTC unless it names an offset; or a duration before now."""
    if _DURATION.fullmatch(text.strip()):
        return datetime.now(UTC) - a_duration(text)
    return a_time(text, or_else=", or as 2h (2 hours ago)")


def a_time(text: str, or_else: str = "") -> datetime:
    """ISO 8601, in UTC unless it names an offset."""
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = f"write it as 2026-10-01T12:00:00Z{or_else}"
        raise typer.BadParameter(f"{text!r} is not a time: {hint}") from None


def a_rate(text: str) -> float:
    """A rate per second."""
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not _SLOWEST <= rate <= _FASTEST:  # false for NaN, too
        raise typer.BadParameter(f"{text!r} is not a rate: {_SLOWEST:g} to {_FASTEST} a second")
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
    Path | None, typer.Option("--config", help="Settings file (default: carteiro.toml).")
]
StoreUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store", help="Store URL: sqlite:///FILE, postgresql://HOST/DATABASE or memory://."
    ),
]
QueueUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--queue", help="Redis URL of the queue: redis://HOST/NUMBER (default: the store itself)."
    ),
]
ProviderName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--provider", help="Provider of e-mail, or a chain of several (default: sandbox)."
    ),
]
Host: TypeAlias = Annotated[
    str | None,
    typer.Option("--host", help="Listen address, setting api.host (default: 127.0.0.1)."),
]
Port: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--port", help="Listen port, setting api.port (default: 8025); 0 is any free port."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
OfTenant: TypeAlias = Annotated[
    str | None, typer.Option("--tenant", help="Tenant (default: all tenants).")
]
TenantName: TypeAlias = Annotated[str, typer.Option("--tenant", help="Name of the tenant.")]
TenantArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="Name of the tenant.")
]
MessageArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="Id of the message.")]
RetryPreset: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"Retry preset: {', '.join(PRESETS)}, or one of your own (settings: retry.presets)."
    ),
]
Variables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--var",
        metavar="NAME=VALUE",
        help="Template variable; user.name=Ana sets a nested one. Repeatable.",
    ),
]
ExternalId: TypeAlias = Annotated[str | None, typer.Option(help="External id, set by the tenant.")]
Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", min=0, help="Maximum number to list, newest first; 0 is all.")
]
Since: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        "--since", parser=a_moment, metavar="TIME", help="Earliest time; 2h means two hours ago."
    ),
]
Before: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        "--before",
        parser=a_moment,
        metavar="TIME",
        help="Latest time, exclusive; 7d means a week ago.",
    ),
]
NoConsole: TypeAlias = Annotated[
    bool, typer.Option("--no-console", help="Do not serve the console, setting console.enabled.")
]


def console_choice(*, no_console: bool) -> dict[str, bool]:
    """The setting that the option stands for, if it was given."""
    return {"console.enabled": False} if no_console else {}
