"""What a rule says of a failure, and the rulings that many rules share."""

from dataclasses import replace
from enum import StrEnum

from carteiro.model import Category, Scope, value


class Suppression(StrEnum):
    """What a failure says about writing to the recipient again."""

    NONE = "none"
    SOFT = "soft"  # counts; several of them in a row say something
    HARD = "hard"  # there is nobody there


@value
class Ruling:
    """What a rule says of a failure.

    ``is_local``: one destination alone says so, others may think otherwise. ``is_used_up``: no slower pace helps,
    nothing goes out until the day, or the month, is over. ``leaves_doubt``: it may come after the mail was taken.
    """

    category: Category
    retryable: bool
    scope: Scope
    suppress: Suppression = Suppression.NONE
    is_local: bool = False
    is_used_up: bool = False
    leaves_doubt: bool = False


def later(
    scope: Scope,
    category: Category = Category.TRANSIENT_ERROR,
    suppress: Suppression = Suppression.NONE,
) -> Ruling:
    """It may pass."""
    return Ruling(category, retryable=True, scope=scope, suppress=suppress)


def never(
    scope: Scope,
    category: Category = Category.PERMANENT_ERROR,
    suppress: Suppression = Suppression.NONE,
) -> Ruling:
    """Another attempt would fail the same way."""
    return Ruling(category, retryable=False, scope=scope, suppress=suppress)


NO_MAILBOX = never(Scope.RECIPIENT, suppress=Suppression.HARD)
REFUSED_RECIPIENT = never(Scope.RECIPIENT, suppress=Suppression.SOFT)
UNREACHED_RECIPIENT = never(Scope.RECIPIENT)
BUSY_RECIPIENT = later(Scope.RECIPIENT)
FULL_MAILBOX = later(Scope.RECIPIENT, Category.QUOTA_ERROR, Suppression.SOFT)
RECIPIENT_RATE = later(Scope.RECIPIENT, Category.QUOTA_ERROR)

BAD_MESSAGE = never(Scope.MESSAGE)
INVALID_MESSAGE = never(Scope.MESSAGE, Category.VALIDATION_ERROR)
MESSAGE_LATER = later(Scope.MESSAGE)

OUR_SENDER = never(Scope.SENDER, Category.CONFIGURATION_ERROR)
OUR_ACCOUNT = never(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
OUR_TENANT = never(Scope.TENANT, Category.CONFIGURATION_ERROR)

UNAVAILABLE = later(Scope.PROVIDER)
THROTTLED = later(Scope.PROVIDER, Category.QUOTA_ERROR)
USED_UP = replace(THROTTLED, is_used_up=True)
BROKEN = replace(UNAVAILABLE, leaves_doubt=True)
# Another provider, with other addresses, may get through; so may this one elsewhere.
BLOCKED_SOURCE = replace(UNAVAILABLE, is_local=True)
# How our host presents itself: until somebody mends it, that destination says the same.
OUR_HOST = replace(OUR_ACCOUNT, is_local=True)

DESTINATION_LATER = later(Scope.DESTINATION)
DESTINATION_FULL = later(Scope.DESTINATION, Category.QUOTA_ERROR)
TOO_FAST = later(Scope.DESTINATION, Category.QUOTA_ERROR)
DESTINATION_REFUSES = never(Scope.DESTINATION)

UNKNOWN = later(Scope.MESSAGE)  # the message's: a fault that nobody knows must still be charged
