"""The meaning of an HTTP status without the name of an error."""

from collections.abc import Mapping

from carteiro.model import Category, Scope
from carteiro.policy.rules.ruling import MESSAGE_LATER, THROTTLED, UNAVAILABLE, Ruling, later

# The answer is from a proxy or a wrong address, not from the service: it may be temporary.
_SHUT_OUT = later(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
STATUSES: Mapping[int, Ruling] = {
    401: _SHUT_OUT,
    403: _SHUT_OUT,
    407: _SHUT_OUT,
    408: later(Scope.PROVIDER, Category.TIMEOUT_ERROR),
    413: MESSAGE_LATER,  # too large for a proxy: other mail still gets through
    429: THROTTLED,
}
STATUS_CLASSES: Mapping[int, Ruling] = {4: UNAVAILABLE, 5: UNAVAILABLE}


def ruling_of(status: int) -> Ruling | None:
    """The ruling of the status, else of its class; None: not an error."""
    return STATUSES.get(status) or STATUS_CLASSES.get(status // 100)
