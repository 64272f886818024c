"""Findings of a check of an installation."""

from enum import StrEnum

from carteiro.model import value


class Level(StrEnum):
    """Severity of a finding; only ``fail`` must be fixed before the installation can work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@value
class Finding:
    """One checked thing, its state, and the remedy."""

    check: str
    level: Level
    told: str
    advice: str = ""
