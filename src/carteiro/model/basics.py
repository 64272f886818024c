"""Ids, moments and pages: what every other word is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, NewType, TypeAlias, TypeVar, dataclass_transform
from uuid import UUID

MessageId = NewType("MessageId", str)  # UUIDv7; also the job's id: one message, one job
ClaimId = NewType("ClaimId", str)  # made anew for each claim call
TenantId = NewType("TenantId", str)
KindName = NewType("KindName", str)
RecipientId = NewType("RecipientId", str)
KeyId = NewType("KeyId", str)
Cursor = NewType("Cursor", str)  # where a page ended; opaque to everyone but the store that made it
EMAIL = KindName("email:send")
ZERO = timedelta(0)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # nothing is due after it
Metadata: TypeAlias = Mapping[str, Any]
Row = TypeVar("Row")


if TYPE_CHECKING:
    _T = TypeVar("_T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[_T]) -> type[_T]:
        """Make a value of a class: fields, equality, a hash, and nobody changes it."""
        ...

else:
    # Frozen to the type checker only: `frozen=True` makes creating an object three times as dear,
    # and the hot path creates about ten per message.
    value = dataclass(slots=True, unsafe_hash=True)


def parse_message_id(given: str) -> MessageId | None:
    """The id that a text stands for; None: no message can have it."""
    try:
        return MessageId(str(UUID(given)))
    except ValueError:
        return None


def made_at(message: MessageId) -> float | None:
    """When the message got its id, in seconds since 1970: a UUIDv7 starts with the milliseconds.

    None: whoever gave it one, by SQL, took another kind.
    """
    return int(message[:8] + message[9:13], 16) / 1000 if message[14:15] == "7" else None


@dataclass(slots=True)
class Page(Generic[Row]):
    """A part of a list; ``next`` leads to the part after it, None at the end. A short one need not be the last."""

    rows: list[Row]
    next: Cursor | None
