"""Checks of the ticket lane for ``carteiro doctor``, where there is one."""

from pathlib import Path

from carteiro.config import Settings
from carteiro.errors import ConfigError, needing_extra
from carteiro.model.checkup import Finding, Level

_OF_THE_LANE = ("tickets.", "ticket_urls.")
_OF_ANY = ("log.", "tracing.", "metrics.", "api.host")  # the last two are set in the image
_DEFAULT = "default"
_SQLITE = "sqlite:///"


async def examine_lane(settings: Settings) -> list[Finding]:
    """Return the findings; none, where no setting is about tickets."""
    if not any(key.startswith(_OF_THE_LANE) for key in _given(settings)):
        return []
    try:
        with needing_extra("Tickets need", "tickets"):
            from carteiro.tickets.examine import examine  # noqa: PLC0415 - dear, and not for all
    except ConfigError as error:
        return [Finding("tickets", Level.FAIL, str(error), "install them: the lane needs them")]
    return await examine(settings.tickets)


def is_lane_only(settings: Settings) -> bool:
    """Nothing here is about e-mail and tasks: no setting, and no file of a store."""
    given = _given(settings)
    about_more = [key for key in given if not key.startswith((*_OF_THE_LANE, *_OF_ANY))]
    return (
        bool(given) and not about_more and not Path(settings.store.removeprefix(_SQLITE)).exists()
    )


def _given(settings: Settings) -> list[str]:
    return [each.key for each in settings.given() if each.origin != _DEFAULT]
