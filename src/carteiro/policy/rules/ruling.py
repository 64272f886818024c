"""Rulings: the meaning of a failure, and rulings that many rules share."""

import re
from dataclasses import replace
from enum import StrEnum

from carteiro.model import Category, Scope, value


class Suppression(StrEnum):
    """The effect of a failure on the recipient's address."""

    NONE = "none"
    SOFT = "soft"  # counted; several of them suppress
    HARD = "hard"  # the mailbox does not exist


@value
class Ruling:
    """The meaning of a failure.

    ``is_local``: only one destination says so, others may accept. ``is_used_up``: a slower rate does not help,
    the quota of the day or month is used up. ``leaves_doubt``: it may come after the mail was taken.
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
    """A retryable failure."""
    return Ruling(category, retryable=True, scope=scope, suppress=suppress)


def never(
    scope: Scope,
    category: Category = Category.PERMANENT_ERROR,
    suppress: Suppression = Suppression.NONE,
) -> Ruling:
    """A failure that every other attempt would repeat."""
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
SENDER_LATER = later(Scope.SENDER)
ACCOUNT_LATER = later(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
CLOSED_ACCOUNT = never(Scope.PROVIDER)

UNAVAILABLE = later(Scope.PROVIDER)
THROTTLED = later(Scope.PROVIDER, Category.QUOTA_ERROR)
USED_UP = replace(THROTTLED, is_used_up=True)
BROKEN = replace(UNAVAILABLE, leaves_doubt=True)
TIMED_OUT = later(Scope.PROVIDER, Category.TIMEOUT_ERROR)
BROKEN_BY_TIMEOUT = replace(TIMED_OUT, leaves_doubt=True)
# Another provider, with other addresses, may succeed; so may this one elsewhere.
BLOCKED_SOURCE = replace(UNAVAILABLE, is_local=True)
# The identity of our host: that destination refuses it until it is fixed.
OUR_HOST = replace(OUR_ACCOUNT, is_local=True)

DESTINATION_LATER = later(Scope.DESTINATION)
DESTINATION_FULL = later(Scope.DESTINATION, Category.QUOTA_ERROR)
TOO_FAST = later(Scope.DESTINATION, Category.QUOTA_ERROR)
DESTINATION_REFUSES = never(Scope.DESTINATION)

UNKNOWN = later(Scope.MESSAGE)  # charged to the message: an unknown fault must count


_MEANING = re.compile(r"^ *(\w+):", re.MULTILINE)


def meanings(text: str) -> dict[str, Ruling]:
    """The rulings of codes or names, from a text of ``RULING: code code …``."""
    _, *parts = _MEANING.split(text)
    return {
        code: globals()[ruling]
        for ruling, listed in zip(parts[::2], parts[1::2], strict=True)
        for code in listed.split()
    }
