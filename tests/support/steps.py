"""The steps of a message's path, taken on a store as a worker takes them."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from carteiro.api.access_keys import hash_key
from carteiro.model import (
    EMAIL,
    ZERO,
    Accepted,
    Begun,
    Claimed,
    ClaimId,
    Dead,
    End,
    Event,
    EventType,
    Key,
    KindName,
    Late,
    LeasedJob,
    MessageId,
    NewMessage,
    NewRecipient,
    RecipientId,
    Refused,
    Role,
    Settled,
    Start,
    TenantId,
    Verdict,
)
from carteiro.ports import Backend, Store
from support.builders import ACME, a_claim_id, a_message

LEASE = timedelta(seconds=30)
HOLD = timedelta(seconds=40)

RECEIVED = Event(EventType.RECEIVED, {})
VALIDATED = Event(EventType.VALIDATED, {"validations": ["INTEGRITY"]})
VALIDATION_FAILED = Event(EventType.VALIDATION_FAILED, {"validation": "INTEGRITY"})
IN_DOUBT = Event(EventType.IN_DOUBT, {"attempt": 1})


async def accepted(store: Store, *new: NewMessage) -> list[MessageId]:
    """Accept messages that are new to the store."""
    answers = await store.accept(new)
    assert all(isinstance(answer, Accepted) for answer in answers), answers
    return [each.id for each in new]


async def accepted_recipient(
    backend: Backend, told: NewRecipient, tenant: str = ACME, **changes: Any
) -> RecipientId:
    """Accept a message to this recipient; the id that the store knows it by."""
    [answer] = await backend.store.accept([a_message(tenant, recipient=told, **changes)])
    assert isinstance(answer, Accepted), answer
    assert answer.recipient_id is not None
    return answer.recipient_id


async def claim(
    store: Store,
    *,
    limit: int = 100,
    kinds: Collection[KindName] = (EMAIL,),
    lease: timedelta = LEASE,
    claim_id: ClaimId | None = None,
    ahead: int = 0,
) -> Claimed:
    """Claim as a worker with this many free slots does."""
    return await store.claim(
        claim_id=claim_id or a_claim_id(), kinds=kinds, limit=limit, lease=lease, ahead=ahead
    )


async def claimed(store: Store, **options: Any) -> list[LeasedJob]:
    """The claimed jobs; ``options`` are those of `claim`."""
    return (await claim(store, **options)).jobs


async def claimed_ids(store: Store, **options: Any) -> list[MessageId]:
    """The messages of the claimed jobs, in claim order."""
    return [job.lease.job for job in await claimed(store, **options)]


async def claimed_tenants(store: Store, **options: Any) -> list[str]:
    """The tenants of the claimed jobs, job by job."""
    return [job.tenant for job in await claimed(store, **options)]


async def claimed_alone(store: Store, **options: Any) -> LeasedJob:
    """The only job that can be claimed."""
    [job] = await claimed(store, **options)
    return job


async def declare(
    store: Store,
    job: LeasedJob,
    *,
    hold: timedelta = HOLD,
    events: tuple[Event, ...] | None = None,
    provider: str = "sandbox",
) -> Begun | Refused:
    """Declare an attempt with the events of the stages before it; an open one is in doubt."""
    if events is None:
        events = (*((IN_DOUBT,) if job.open_attempt else ()), RECEIVED, VALIDATED)
    start = Start(job.lease, provider, hold, open_attempt=job.open_attempt, events=events)
    [answer] = await store.declare([start])
    return answer


async def claimed_and_declared(
    store: Store, *, provider: str = "sandbox", **options: Any
) -> LeasedJob:
    """The only job, with its attempt begun."""
    job = await claimed_alone(store, **options)
    answer = await declare(store, job, provider=provider)
    assert isinstance(answer, Begun), answer
    return job


async def settled(
    store: Store,
    job: LeasedJob,
    verdict: Verdict,
    *,
    events: tuple[Event, ...] = (),
    duration: timedelta = ZERO,
    in_doubt: int = 0,
    attempted: bool = False,
) -> Settled | Late:
    """Settle one job; a kind that declares its attempts and is sent or retried is declared here first."""
    if job.kind == EMAIL and not isinstance(verdict, Dead):
        await declare(store, job)
    end = End(
        job.lease,
        verdict,
        events=events,
        duration=duration,
        in_doubt=in_doubt,
        attempted=attempted,
    )
    [answer] = await store.settle([end])
    return answer


async def attempted(store: Store, verdict: Verdict, **options: Any) -> LeasedJob:
    """Claim the only job, declare its attempt and settle it so."""
    job = await claimed_and_declared(store, **options)
    answer = await settled(store, job, verdict)
    assert isinstance(answer, Settled), answer
    return job


async def everything_about(backend: Backend, message: MessageId) -> tuple[object, ...]:
    """All readable data of a message: equal before and after means that nothing was written."""
    return (
        await backend.reading.message(message),
        await backend.reading.events(message),
        await backend.dead_letters.show(message),
    )


async def event_types(backend: Backend, message: MessageId) -> list[EventType]:
    """The timeline of a message, types only."""
    return [event.type for event in await backend.reading.events(message)]


async def added_key(
    backend: Backend,
    key: str,
    *,
    tenant: TenantId | None = ACME,
    expires_in: timedelta | None = None,
    **options: Any,
) -> Key:
    """Add a key to a tenant that has room for it; without a tenant, a token with the role admin."""
    if tenant is None:
        options = {"role": Role.ADMIN} | options
    answer = await backend.keys.add(
        tenant, key_hash=hash_key(key), hint=key[:2], expires_in=expires_in, **options
    )
    assert isinstance(answer, Key), answer
    return answer


async def key_holder(backend: Backend, key: str) -> TenantId | None:
    """The tenant of a live key."""
    found = await backend.keys.holder(hash_key(key))
    return None if found is None else found.tenant
