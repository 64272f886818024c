"""What a status of HTTP means that comes without the name of an error."""

from collections.abc import Mapping

from carteiro.model import Category, Scope
from carteiro.policy.rules.ruling import MESSAGE_LATER, THROTTLED, UNAVAILABLE, Ruling, later

# It is not the service that speaks, but a proxy, or whoever is at a wrong address: it may pass with them.
_SHUT_OUT = later(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
STATUSES: Mapping[int, Ruling] = {
    401: _SHUT_OUT,
    403: _SHUT_OUT,
    407: _SHUT_OUT,
    408: later(Scope.PROVIDER, Category.TIMEOUT_ERROR),
    413: MESSAGE_LATER,  # too large for somebody in between: others still get through
    429: THROTTLED,
}
STATUS_CLASSES: Mapping[int, Ruling] = {4: UNAVAILABLE, 5: UNAVAILABLE}


def ruling_of(status: int) -> Ruling | None:
    """By the status, else by its class; None: it is no refusal."""
    return STATUSES.get(status) or STATUS_CLASSES.get(status // 100)
