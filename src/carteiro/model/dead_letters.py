"""Dead letters: what could not be delivered, kept for people."""

from datetime import datetime, timedelta
from enum import StrEnum

from carteiro.model.basics import KindName, MessageId, TenantId, value
from carteiro.model.failures import Category, DeadReason, Failure
from carteiro.model.messages import NewRecipient


@value
class DeadLetter:
    """A message that could not be delivered, kept for people."""

    id: MessageId
    tenant: TenantId
    kind: KindName
    content: str
    reason: DeadReason
    failed_attempts: int
    failure: Failure
    failed_at: datetime
    enqueued_at: datetime
    moved_at: datetime
    ttl: timedelta
    redriven_at: datetime | None


@value
class DeadFilter:
    """Which dead letters; what is None does not matter. ``text`` is looked for in code, reason and address."""

    tenant: TenantId | None = None
    kind: KindName | None = None
    reason: DeadReason | None = None
    code: str | None = None
    category: Category | None = None
    text: str | None = None
    moved_after: datetime | None = None
    moved_before: datetime | None = None
    is_redriven: bool | None = None


@value
class DeadGroup:
    """Dead letters that have something in common."""

    key: str
    count: int
    oldest: datetime
    newest: datetime


@value
class Revision:
    """What a dead letter is to become: new content, a new Message-ID, a new provider key."""

    content: str
    to: str | None
    subject: str | None
    recipient: NewRecipient | None = None  # who it is for now; None: nobody that is known
    of: int | None = None  # the revision that it was made of; None: of whichever it finds


class RedriveAnswer(StrEnum):
    """What a redrive did."""

    REDRIVEN = "redriven"
    ALREADY = "already_redriven"
    NOT_FOUND = "not_found"
    NO_CONTENT = "no_content"  # its body is past its retention
    CHANGED = "changed"  # it is another revision by now than the one that was edited
