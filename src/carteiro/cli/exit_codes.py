"""How a command ends: one small table, for scripts; and the errors that only the command line has."""

import enum

from carteiro.errors import (
    CannotMove,
    CarteiroError,
    ConfigError,
    DomainClaimed,
    InvalidMessage,
    KeyReused,
    TenantMissing,
    TextUnfit,
    TierUnknown,
)


class ExitCode(enum.IntEnum):
    """What a script may ask of ``$?``."""

    OK = 0
    FAILED = 1
    WRONG_USE = 2
    NOT_FOUND = 3
    REFUSED = 4


MEANINGS = {
    ExitCode.OK: "It is done.",
    ExitCode.FAILED: "It failed: the store or the disk, or `doctor` found something that must be mended.",
    ExitCode.WRONG_USE: "Wrong use: an option, an argument, a setting or what was to be sent.",
    ExitCode.NOT_FOUND: "There is no such message, tenant, key, template, recipient or file.",
    ExitCode.REFUSED: "Refused as things stand: finished already, there already, too many, or not confirmed.",
}


class WrongUse(CarteiroError):
    """What was asked makes no sense; says what is allowed."""


class NotFound(CarteiroError):
    """There is no such thing; says how to find what there is."""


class NotNow(CarteiroError):
    """There is, but as things stand it cannot be done; says what to do first."""


_CODES: tuple[tuple[type[CarteiroError], ExitCode], ...] = (
    (ConfigError, ExitCode.WRONG_USE),
    (InvalidMessage, ExitCode.WRONG_USE),
    (TextUnfit, ExitCode.WRONG_USE),
    (TierUnknown, ExitCode.WRONG_USE),
    (DomainClaimed, ExitCode.REFUSED),
    (WrongUse, ExitCode.WRONG_USE),
    (NotFound, ExitCode.NOT_FOUND),
    (TenantMissing, ExitCode.NOT_FOUND),
    (NotNow, ExitCode.REFUSED),
    (CannotMove, ExitCode.REFUSED),
    (KeyReused, ExitCode.REFUSED),
)


def exit_code_of(error: CarteiroError) -> ExitCode:
    """The code that tells scripts what kind of error it was."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
