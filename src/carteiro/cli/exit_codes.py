"""Exit codes of commands, for scripts; and the errors that only the command line has."""

import enum

from carteiro import errors


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


class WrongUse(errors.CarteiroError):
    """The command is not valid; the text names the allowed forms."""


class NotFound(errors.CarteiroError):
    """There is no such thing; the text says how to list the existing ones."""


class NotNow(errors.CarteiroError):
    """Not possible in the current state; the text says what to do first."""


_CODES = {
    ExitCode.WRONG_USE: (
        *(WrongUse, errors.ConfigError, errors.InvalidMessage, errors.TextUnfit),
        errors.TierUnknown,
    ),
    ExitCode.NOT_FOUND: (NotFound, errors.TenantMissing),
    ExitCode.REFUSED: (NotNow, errors.CannotMove, errors.DomainClaimed, errors.KeyReused),
}


def exit_code_of(error: errors.CarteiroError) -> ExitCode:
    """The exit code of an error."""
    return next(
        (code for code, kinds in _CODES.items() if isinstance(error, kinds)), ExitCode.FAILED
    )
