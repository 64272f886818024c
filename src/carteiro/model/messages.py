"""Messages: how they come in, and how they are read."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from carteiro.model.basics import ClaimId, KindName, MessageId, RecipientId, TenantId, value
from carteiro.model.failures import Failure
from carteiro.model.states import Event, State
from carteiro.model.tenants import ApiLimits


class Delivery(StrEnum):
    """What to do when an outcome is unknown: send again, or never risk a second one."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


@value
class NewRecipient:
    """Who the tenant says it writes to; known by id, else external id, else document hash."""

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
    """What a tenant calls a request, so that asking twice does it once; ``digest`` is that of what it asked."""

    key: str
    digest: str


@value
class QueueRow:
    """What the table queue shows of a message that the ledger does not know."""

    user_id: str | None  # a UUID
    max_retries: int = 3


@value
class NewMessage:
    """What a tenant wants done, ready to be committed.

    ``key`` set: committed with the message, kept for a day. ``limits`` set: counted against them.
    ``row`` set: it is a row of the table queue, where the store has one.
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
    events: tuple[Event, ...] = ()
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
    """Already there, by its id or its key: the first acceptance again, nothing was written or counted."""

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
    """The key stands for another request: nothing was written."""

    first: MessageId


@value
class Charged:
    """How many refused messages were counted, and the limit that the others were over, if any were."""

    counted: int
    over: "OverLimit | None" = None


@value
class OverLimit:
    """The tenant handed in as many as it may: nothing was written. The limit that opens last is told."""

    limit: int
    remaining: int
    resets_at: datetime
    retry_after: timedelta


AcceptAnswer: TypeAlias = (
    Accepted | Replayed | TenantUnknown | TenantDisabled | KeyConflict | OverLimit
)


@value
class NotStored:
    """One of a long list that came after the store failed: those before it are stored, it may be sent again."""

    reason: str


StoreAnswer: TypeAlias = Accepted | Replayed | KeyConflict | OverLimit | NotStored


@value
class StoredMessage:
    """A ledger row, as people and the API read it."""

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
    """Which messages; what is None does not matter.

    ``created_after`` is the first moment that counts, ``created_before`` the first that does not.
    """

    tenant: TenantId | None = None
    kind: KindName | None = None
    state: State | None = None
    to: str | None = None
    external_id: str | None = None
    provider_id: str | None = None
    recipient_external_id: str | None = None
    tag: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@value
class QueuePlace:
    """Where the job of an unfinished message is: ready, or parked until a moment, perhaps by a claim.

    ``tenant_wakes_at`` set: the tenant's seat is out of the ring until then. ``limited_until`` set: the
    send limit of the kind lets nothing go before.
    """

    parked_until: datetime | None
    is_claimed: bool
    claims: int
    tenant_wakes_at: datetime | None
    tenant_in_flight: int
    limited_until: datetime | None = None


@value
class Depth:
    """How much of one kind is in the queue; ``oldest_due_at``: since when the longest waiting could be claimed."""

    kind: KindName
    unfinished: int
    in_flight: int
    oldest_due_at: datetime | None


@value
class Erased:
    """What an erasure took away; ``has_more``: ask again, it works in pages."""

    messages: int
    recipients: int = 0
    has_more: bool = False


@value
class InboxMail:
    """What the sandbox handed over: one row per delivery."""

    message: MessageId
    tenant: TenantId
    to: str
    subject: str
    content: str
    provider_id: str
    at: datetime | None = None  # the store's, on reading
