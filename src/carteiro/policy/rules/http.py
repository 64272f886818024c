"""The meaning of an HTTP status without the name of an error."""

from collections.abc import Mapping

from carteiro.policy.rules.ruling import (
    ACCOUNT_LATER,
    MESSAGE_LATER,
    THROTTLED,
    TIMED_OUT,
    UNAVAILABLE,
    Ruling,
)

# The answer is from a proxy or a wrong address, not from the service: it may be temporary.
STATUSES: Mapping[int, Ruling] = {
    401: ACCOUNT_LATER,
    403: ACCOUNT_LATER,
    407: ACCOUNT_LATER,
    408: TIMED_OUT,
    413: MESSAGE_LATER,  # too large for a proxy: other mail still gets through
    429: THROTTLED,
}
STATUS_CLASSES: Mapping[int, Ruling] = {4: UNAVAILABLE, 5: UNAVAILABLE}


def ruling_of(status: int) -> Ruling | None:
    """The ruling of the status, else of its class; None: not an error."""
    return STATUSES.get(status) or STATUS_CLASSES.get(status // 100)
