"""Messages as they are accepted and as they are read."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from carteiro.model.basics import ClaimId, KindName, MessageId, RecipientId, TenantId, value
from carteiro.model.failures import Failure
from carteiro.model.states import State
from carteiro.model.tenants import ApiLimits


class Delivery(StrEnum):
    """The choice when an outcome is unknown: send again, or never risk a duplicate."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


@value
class NewRecipient:
    """The recipient as the tenant describes it; identified by id, else external id, else document hash."""

    email: str
    recipient_id: RecipientId | None = None
    external_id: str | None = None
    cpf_cnpj_hash: str | None = None
    razao_social: str | None = None
    nome: str | None = None


@value
class Recipient:
    """A recipient as stored."""

    id: RecipientId
    tenant: TenantId
    email: str
    external_id: str | None
    cpf_cnpj_hash: str | None
    razao_social: str | None
    nome: str | None
    created_at: datetime
    deleted_at: datetime | None


@value
class IdempotencyKey:
    """The tenant's name for a request, so that a repetition has no effect; ``digest`` is the request's hash."""

    key: str
    digest: str


@value
class QueueRow:
    """Fields that the table queue shows and the ledger does not have."""

    user_id: str | None  # a UUID
    max_retries: int = 3


@value
class NewMessage:
    """A message of a tenant, ready to be committed.

    A message of kind `EMAIL` has an ENQUEUED event with its request id.
    ``key`` set: it is committed with the message and kept for a day. ``limits`` set: the message
    counts against them. ``row`` set: it is also a row of the table queue, if the store has one.
    """

    id: MessageId
    tenant: TenantId
    kind: KindName
    content: str  # a JSON document; immutable once accepted
    request_id: str
    ttl: timedelta
    priority: int = 5
    due: datetime | None = None
    declares: bool = True
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    to: str | None = None
    subject: str | None = None
    external_id: str | None = None
    recipient: NewRecipient | None = None
    tags: tuple[str, ...] = ()
    template_type: str | None = None
    key: IdempotencyKey | None = None
    limits: ApiLimits | None = None
    row: QueueRow | None = None


@value
class Accepted:
    """Durably committed."""

    id: MessageId
    received_at: datetime
    recipient_id: RecipientId | None = None


@value
class Replayed:
    """Known already, by its id or its key: the first acceptance; nothing was written or counted."""

    id: MessageId
    received_at: datetime
    recipient_id: RecipientId | None = None
    request_id: str = ""


@value
class TenantUnknown:
    """No such tenant: nothing was written."""

    tenant: TenantId


@value
class TenantDisabled:
    """The tenant may not send: nothing was written."""

    tenant: TenantId


@value
class KeyConflict:
    """The key belongs to another request: nothing was written."""

    first: MessageId


@value
class Charged:
    """The number of refused messages that were counted, and the limit that the others exceeded, if any."""

    counted: int
    over: "OverLimit | None" = None


@value
class OverLimit:
    """Rate limit of the tenant exceeded: nothing was written. Names the limit that resets last."""

    limit: int
    remaining: int
    resets_at: datetime
    retry_after: timedelta
    window: timedelta


AcceptAnswer: TypeAlias = (
    Accepted | Replayed | TenantUnknown | TenantDisabled | KeyConflict | OverLimit
)


@value
class NotStored:
    """An item of a long list after the store failed: the items before it are stored; send this one again."""

    reason: str


StoreAnswer: TypeAlias = Accepted | Replayed | KeyConflict | OverLimit | NotStored


@value
class StoredMessage:
    """A ledger row, as users and the API read it."""

    id: MessageId
    tenant: TenantId
    kind: KindName
    state: State
    priority: int
    due_at: datetime
    expires_at: datetime
    attempts: int
    charged: int
    in_doubt: int
    round: int
    revision: int
    holder: ClaimId | None
    held_until: datetime | None
    cancel_requested_at: datetime | None
    request_id: str
    external_id: str | None
    recipient_id: RecipientId | None
    to: str | None
    subject: str | None
    provider: str | None
    provider_id: str | None
    failure: Failure | None
    duration: timedelta | None
    created_at: datetime
    finished_at: datetime | None
    content: str | None
    tags: tuple[str, ...] = ()
    template_type: str | None = None


@value
class MessageFilter:
    """Filter of messages; None matches any.

    ``code`` is the code of the last failure, ours or as the provider gave it. ``created_after`` is inclusive,
    ``created_before`` is exclusive.
    """

    tenant: TenantId | None = None
    kind: KindName | None = None
    state: State | None = None
    to: str | None = None
    external_id: str | None = None
    provider_id: str | None = None
    recipient_external_id: str | None = None
    tag: str | None = None
    code: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@value
class QueuePlace:
    """State of an unfinished message's job: ready, or parked until a time or by a claim.

    ``tenant_wakes_at`` set: the tenant's seat is outside the ring until then. ``limited_until`` set: the
    send limit of the kind is used up until then. ``ahead``: jobs of its tenant and kind that are ready and before it,
    ``parked_ahead``: those that are or were parked until before its time, each at most 10,000. ``waits_since``: the
    time since which it or one of them waits.
    """

    parked_until: datetime | None
    is_claimed: bool
    claims: int
    tenant_wakes_at: datetime | None
    tenant_in_flight: int
    limited_until: datetime | None = None
    ahead: int = 0
    parked_ahead: int = 0
    waits_since: datetime | None = None


@value
class Depth:
    """Queue depth of one kind; ``oldest_due_at`` is the time since when the oldest ready job waits."""

    kind: KindName
    unfinished: int
    in_flight: int
    oldest_due_at: datetime | None


@value
class Erased:
    """Counts of one erasure; ``has_more``: call again, each call does one page."""

    messages: int
    recipients: int = 0
    has_more: bool = False


@value
class InboxMail:
    """A mail that the sandbox took: one row per delivery."""

    message: MessageId
    tenant: TenantId
    to: str
    subject: str
    content: str
    provider_id: str
    at: datetime | None = None  # set by the store
