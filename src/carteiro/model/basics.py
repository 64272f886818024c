"""Ids, time limits and pages, which all other values use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, NewType, TypeAlias, TypeVar, dataclass_transform
from uuid import UUID

MessageId = NewType("MessageId", str)  # UUIDv7; also the job's id: one message, one job
ClaimId = NewType("ClaimId", str)  # new for each claim call
TenantId = NewType("TenantId", str)
KindName = NewType("KindName", str)
RecipientId = NewType("RecipientId", str)
KeyId = NewType("KeyId", str)
Cursor = NewType("Cursor", str)  # the end of a page; opaque to everyone but the store that made it
EMAIL = KindName("email:send")
ZERO = timedelta(0)
MILLISECOND = timedelta(milliseconds=1)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # nothing is due after it
Metadata: TypeAlias = Mapping[str, Any]
Row = TypeVar("Row")


if TYPE_CHECKING:
    _T = TypeVar("_T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[_T]) -> type[_T]:
        """Make the class a value: fields, equality and a hash; treat it as immutable."""
        ...

else:
    # Frozen for the type checker only: with `frozen=True` creating an object takes three times as long,
    # and the hot path creates about ten per message.
    value = dataclass(slots=True, unsafe_hash=True)


def parse_message_id(given: str) -> MessageId | None:
    """Parse a message id; None if no message can have it."""
    try:
        return MessageId(str(UUID(given)))
    except ValueError:
        return None


def made_at(message: MessageId) -> float | None:
    """Return when the message got its id, in seconds since 1970: a UUIDv7 starts with the milliseconds.

    None if the id is not a UUIDv7: a client gave its own, by SQL.
    """
    return int(message[:8] + message[9:13], 16) / 1000 if message[14:15] == "7" else None


@dataclass(slots=True)
class Page(Generic[Row]):
    """A part of a list; ``next`` is the cursor of the next part, None at the end. Any part may be short.

    ``reached``: the time up to which the list was searched, if that is why the part is short.
    """

    rows: list[Row]
    next: Cursor | None
    reached: datetime | None = field(default=None, compare=False)
