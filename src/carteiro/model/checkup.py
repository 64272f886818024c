"""Findings of a check of an installation."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from carteiro.model import value

_KILO = 1000


class Level(StrEnum):
    """Severity of a finding; only ``fail`` must be fixed before the installation can work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@value
class Finding:
    """One checked thing, its state, and the remedy; ``figures`` are exact, for programs."""

    check: str
    level: Level
    told: str
    advice: str = ""
    figures: Mapping[str, int] = field(default_factory=dict)


def in_size(count: int) -> str:
    """A number of bytes as people read it: 1.5 GB."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= _KILO and len(units) > 1:
        size, units = size / _KILO, units[1:]
    return f"{count} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
