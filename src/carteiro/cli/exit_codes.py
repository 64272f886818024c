"""Exit codes of commands, for scripts; and the errors that only the command line has."""

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
    """Exit codes, for scripts."""

    OK = 0
    FAILED = 1
    WRONG_USE = 2
    NOT_FOUND = 3
    REFUSED = 4


MEANINGS = {
    ExitCode.OK: "Success.",
    ExitCode.FAILED: "Failure: the store or the disk failed, or `doctor` found a failure.",
    ExitCode.WRONG_USE: "Wrong use: an option, an argument, a setting or the content is not valid.",
    ExitCode.NOT_FOUND: "Not found: there is no such message, tenant, key, template, recipient or file.",
    ExitCode.REFUSED: "Refused in the current state: finished already, exists already, over a limit, or not confirmed.",
}


class WrongUse(CarteiroError):
    """The command is not valid; the text names the allowed forms."""


class NotFound(CarteiroError):
    """There is no such thing; the text says how to list the existing ones."""


class NotNow(CarteiroError):
    """Not possible in the current state; the text says what to do first."""


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
    """The exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
