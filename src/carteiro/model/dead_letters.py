"""Dead letters: messages that could not be delivered, kept for a human."""

from datetime import datetime, timedelta
from enum import StrEnum

from carteiro.model.basics import KindName, MessageId, TenantId, value
from carteiro.model.failures import Category, DeadReason, Failure
from carteiro.model.messages import NewRecipient


@value
class DeadLetter:
    """A message that could not be delivered, kept for a human."""

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
    group: str  # of failures that are alike: see policy/grouping.py
    # For automatic redrives: the provider that it waits for, those that it had, and the start of its cool-down.
    waits_for: str | None = None
    automatic_rounds: int = 0
    waits_since: datetime | None = None


@value
class DeadFilter:
    """Filter of dead letters; None matches any. ``text`` is searched in code, reason and address.

    ``without``: a tenant whose dead letters are left out of those of all tenants.
    """

    tenant: TenantId | None = None
    kind: KindName | None = None
    reason: DeadReason | None = None
    code: str | None = None
    category: Category | None = None
    group: str | None = None
    text: str | None = None
    moved_after: datetime | None = None
    moved_before: datetime | None = None
    is_redriven: bool | None = None
    without: TenantId | None = None


@value
class DeadGroup:
    """Dead letters that have one field in common."""

    key: str
    count: int
    oldest: datetime
    newest: datetime


@value
class Revision:
    """An edit of a dead letter: new content, a new Message-ID, a new provider key."""

    content: str
    to: str | None
    subject: str | None
    recipient: NewRecipient | None = None  # the new recipient; None: not a known one
    of: int | None = None  # the revision that was edited; None: any
    fields: tuple[str, ...] = ()  # names of the changed fields, for the audit row


class RedriveAnswer(StrEnum):
    """Result of a redrive."""

    REDRIVEN = "redriven"
    ALREADY = "already_redriven"
    NOT_FOUND = "not_found"
    NO_CONTENT = "no_content"  # its body was pruned
    CHANGED = "changed"  # another edit came first
