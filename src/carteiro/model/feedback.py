"""Feedback of providers, and suppressed addresses."""

from datetime import datetime
from enum import StrEnum

from carteiro.model.basics import MessageId, TenantId, value
from carteiro.model.states import EventType


class BounceKind(StrEnum):
    """Cause of a bounce: the address does not exist, cannot take mail now, or the mail itself is refused."""

    HARD = "hard"
    SOFT = "soft"
    REJECTED = "rejected"


@value
class Feedback:
    """A provider's report on a message that it took.

    ``type`` SENT: the provider has the message, no more is known. ``event_id`` is the same in each
    repetition of a report. ``revision`` is the revision that it took, and ``tenant_tag`` the tag with
    the tenant's name; None if not reported. ``relays`` are providers that may forward to any other, so
    this provider may report on their messages.
    """

    message: MessageId
    type: EventType
    at: datetime
    provider: str
    provider_id: str
    event_id: str
    revision: int | None = None
    recipients: tuple[str, ...] = ()
    bounce: BounceKind | None = None
    detail: str | None = None
    tenant_tag: str | None = None
    relays: tuple[str, ...] = ()


@value
class UnsubscribeLink:
    """The contents of a link: a message, and the key of its recipient on the tenant's suppression list."""

    tenant: TenantId
    message: MessageId
    key: str


class NoteAnswer(StrEnum):
    """Result of noting a feedback."""

    NOTED = "noted"
    RESOLVED = "resolved"  # recorded, and it made the message SENT
    KNOWN = "known"
    UNKNOWN = "unknown"  # no such message, or it was never sent
    IGNORED = "ignored"  # the message belongs to another tenant, or that provider never had it


class SuppressionReason(StrEnum):
    """Reasons to suppress an address."""

    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    MANUAL = "manual"
    SOFT_BOUNCE = "soft_bounce"
    UNSUBSCRIBED = "unsubscribed"


@value
class NewSuppression:
    """An address to suppress, and the reason. ``at`` None: now; ``expires_at`` None: as usual for the reason.

    ``is_normal``: the address is in normal form, and is not judged again.
    """

    address: str
    reason: SuppressionReason
    at: datetime | None = None
    expires_at: datetime | None = None
    is_normal: bool = False


@value
class Suppression:
    """One reason to suppress an address; ``address`` is None after an erasure: only its hash is left.

    Soft bounces are only counted (``bounces``) until it ``is_active``.
    """

    address: str | None
    reason: SuppressionReason
    created_at: datetime
    expires_at: datetime | None
    is_active: bool = True
    bounces: int = 0
