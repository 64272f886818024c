"""What a look at an installation finds: sound, worth a thought, or to be mended."""

from enum import StrEnum

from carteiro.model import value


class Level(StrEnum):
    """How bad a finding is; only ``fail`` must be mended before it can work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@value
class Finding:
    """One thing that was looked at, what was seen, and what to do about it."""

    check: str
    level: Level
    told: str
    advice: str = ""
