"""A store with one of everything in it, and a snapshot of a store."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from carteiro.model import (
    EMAIL,
    ZERO,
    ApiLimits,
    DeadFilter,
    Event,
    EventType,
    Fairness,
    IdempotencyKey,
    InboxMail,
    KindName,
    MessageFilter,
    MessageId,
    NewRecipient,
    NewSuppression,
    Revision,
    SendLimit,
    Standing,
    SuppressionReason,
    TenantId,
)
from carteiro.ports import Backend
from support.alerting import OFTEN, RULES, full, often, slow
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    a_tenant,
    dead,
    messages,
    retry,
    sent,
)
from support.burying import buried
from support.clock import StoreClock, past
from support.redriving import sent as gone
from support.redriving import started
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    added_key,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    declare,
    everything_about,
    settled,
)
from support.templates import defined

CALM, LOUD = TenantId("calm"), TenantId("loud")
KINDS = (EMAIL, TASK)
KEY = IdempotencyKey("order-1", "digest-1")


async def fill(backend: Backend, clock: StoreClock) -> None:
    """Store one of everything, in every state that a message can rest in."""
    await _people(backend)
    await _ended(backend, clock)
    await backend.rollups.fold(limit=20, most=100)
    await _under_way(backend, clock)
    await _waiting(backend, clock)
    await backend.alerts.move([full(), slow(), often()], RULES)
    await backend.alerts.silence(OFTEN, ACME, ACME, lasts=timedelta(days=1), reason="known ✉")
    await backend.alerts.spread(["log"])


async def _people(backend: Backend) -> None:
    await backend.tenants.weigh_tier("gold", 4.0)
    tenants = [
        a_tenant(ACME, name="Acme & Söhne", tier="gold", cap=50, from_domains=("acme.example",)),
        a_tenant(BRASA, weight=2.5, rate_per_second=1000.0, limits=ApiLimits(5, None, 100)),
        a_tenant(CALM, disabled=True, default_from="calm@example.com", retry_preset="classic"),
        a_tenant(
            LOUD,
            external_id_is_key=True,
            automatic_redrive=False,
            allowed_networks=("10.0.0.0/8",),
            contact="ops@loud.example",
        ),
    ]
    await backend.tenants.define(tenants)
    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=2))
    await backend.tenants.limit(EMAIL, SendLimit(1000, timedelta(seconds=1)))
    await added_key(backend, "ck_acme")
    gone = await added_key(backend, "ck_gone", expires_in=timedelta(days=3))
    await backend.keys.revoke([gone.id], tenant=ACME)
    await added_key(backend, "ca_admin", tenant=None)
    for subject in ("Oi", "Oi \u0001 ✉"):
        await defined(backend, subject=subject)
    await defined(backend, "gone", tenant=BRASA, html=None, text="Tchau")
    await backend.templates.delete(BRASA, "gone")
    suppressed = [
        NewSuppression("ana@example.com", SuppressionReason.COMPLAINT),
        NewSuppression("bia@example.com", SuppressionReason.SOFT_BOUNCE),
    ]
    await backend.suppressions.put(suppressed, tenant=ACME)


async def _ended(backend: Backend, clock: StoreClock) -> None:
    store = backend.store
    [first] = await accepted(store, a_message(tags=("a", "b"), external_id="e-1", key=KEY))
    await attempted(store, sent())
    await backend.inbox.keep(
        [InboxMail(first, ACME, "ana@example.com", "Olá ✉", '{"html":"\\u0000"}', "sandbox-1")]
    )
    known = NewRecipient("ana@example.com", external_id="ana", nome="Ana", cpf_cnpj_hash="h")
    await accepted(store, a_message(BRASA, recipient=known, limits=ApiLimits(5, None, 100)))
    await attempted(store, sent("provider-2"))
    other = NewRecipient("bia@example.com", external_id="bia")
    await accepted(store, a_message(BRASA, recipient=other))
    await attempted(store, sent("provider-3"))
    [_, bia] = (await backend.recipients.list(BRASA)).rows
    await backend.recipients.delete(bia.id, tenant=BRASA)
    clock.advance(timedelta(seconds=1))
    await buried(backend, BRASA)
    again = await buried(backend)
    await backend.dead_letters.redrive(
        [again], by="ana", revision=Revision('{"html":"new"}', "new@example.com", "new")
    )
    await attempted(store, sent("provider-4"))
    await accepted(store, a_message(ttl=timedelta(seconds=1)))
    clock.advance(timedelta(seconds=2))
    await backend.upkeep.expire(limit=10)
    [unwanted] = await accepted(store, a_message())
    await store.cancel([unwanted], tenant=ACME)
    await _redriven(backend, clock)
    await _long(backend, clock)


async def _redriven(backend: Backend, clock: StoreClock) -> None:
    """A redrive whose message died again."""
    message = await buried(backend, LOUD)
    clock.advance(timedelta(seconds=1))
    await gone(backend, await started(backend, tenant=LOUD), message)
    await attempted(backend.store, dead())


async def _long(backend: Backend, clock: StoreClock) -> None:
    """A timeline that has no room for all its events."""
    await accepted(backend.store, a_message())
    for attempt in range(7):
        job = await claimed_alone(backend.store)
        told = Event(EventType.RECEIVED, {"text": f"{attempt} ✉" * 400})
        await declare(backend.store, job, events=(told,))
        verdict = sent("provider-5") if attempt == 6 else retry(timedelta(seconds=1))
        await settled(backend.store, job, verdict)
        clock.advance(timedelta(seconds=1))


async def _under_way(backend: Backend, clock: StoreClock) -> None:
    """Attempts whose worker is gone: in doubt, cancelled meanwhile, late with a success, released."""
    store = backend.store
    await accepted(store, a_message(LOUD))
    slow = await claimed_and_declared(store)
    clock.advance(past(HOLD))
    await claimed_and_declared(store)
    await settled(store, slow, sent("late"))
    await accepted(store, a_message())
    doomed = await claimed_and_declared(store)
    await store.cancel([doomed.lease.job], tenant=ACME)
    await accepted(store, a_task(BRASA))
    await claimed_alone(store, kinds=(TASK,))
    await accepted(store, a_message(BRASA))
    back = await claimed_alone(store)
    await store.release([back.lease], wait=timedelta(hours=2))
    clock.advance(past(HOLD))
    await accepted(store, a_message(BRASA))
    [*_, failed] = await claimed(store, limit=1, kinds=KINDS)
    await settled(store, failed, retry(timedelta(hours=1)))
    await store.reap(limit=1)


async def _waiting(backend: Backend, clock: StoreClock) -> None:
    store = backend.store
    for priority in (5, 1, 9):
        await accepted(store, *messages(4, ACME, priority=priority))
        clock.advance(timedelta(milliseconds=7))
    await accepted(store, *messages(7, BRASA), *messages(3, LOUD, tags=("b",)))
    await accepted(store, a_task(LOUD), a_task(ACME, due=clock.at(timedelta(hours=3))))
    await accepted(
        store, a_message(LOUD, due=clock.at(timedelta(seconds=30)), template_type="welcome")
    )
    await accepted(store, a_message(LOUD, priority=1, content='{"html":"\\u0000"}'))
    [job] = await claimed(store, limit=1)
    await declare(store, job, events=(Event(EventType.RECEIVED, {"note": "\u0000 ✉"}),))
    await settled(store, job, retry(timedelta(hours=1)))
    for job in await claimed(store, limit=3):
        await settled(store, job, dead() if job.tenant == ACME else sent(job.lease.job))
    clock.advance(past(LEASE))


async def read(backend: Backend) -> dict[str, Any]:
    """Everything that the ports return of a store."""
    reading, tenants = backend.reading, [each.id for each in (await backend.tenants.list()).rows]
    found = (await reading.messages(MessageFilter(), limit=1000)).rows
    ids = [each.id for each in found]
    first = await reading.first(KEY, tenant=ACME)
    return {
        "tenants": (await backend.tenants.list()).rows,
        "fairness": await backend.tenants.fairness(),
        "standings": [await _standings(backend, kind) for kind in KINDS],
        "keys": [await backend.keys.list(each) for each in (None, *tenants)],
        "templates": [await backend.templates.list(each) for each in tenants],
        "versions": await backend.templates.versions(ACME, "welcome"),
        "template": await backend.templates.find(ACME, "welcome"),
        "people": [(await backend.recipients.list(each)).rows for each in tenants],
        "messages": found,
        "each": [await everything_about(backend, each) for each in ids],
        "places": [await reading.place(each) for each in ids],
        "tagged": await _ids(backend, tenant=ACME, tag="a"),
        "to": await _ids(backend, tenant=BRASA, to="ana@example.com"),
        "states": [await reading.states(tenant=each) for each in (None, *tenants)],
        "depths": sorted(await reading.depths(), key=lambda each: each.kind),
        "first": first,
        "letters": (await backend.dead_letters.find(DeadFilter())).rows,
        "searched": [
            await backend.dead_letters.group("code", DeadFilter(text=each))
            for each in ("ana@", "TRY later", "550")
        ],
        "groups": await backend.dead_letters.group("code"),
        "redrives": (await backend.redrives.list()).rows,
        "redriven": [
            await backend.redrives.watched(each, limit=10) for each in await backend.redrives.due()
        ],
        "sizes": await backend.dead_letters.sizes(top=10),
        "inbox": await backend.inbox.list(),
        "alerts": (await backend.alerts.list()).rows,
        "silences": await backend.alerts.silenced(),
        "notices": await backend.alerts.waiting(),
        "failures": [
            await backend.failures.show(each.id) for each in (await backend.failures.list()).rows
        ],
        "figures": [
            await backend.rollups.total("hour", timedelta(days=1), tenant=each)
            for each in (None, *tenants)
        ],
        "suppressions": [(await backend.suppressions.list(each)).rows for each in tenants],
    }


async def _standings(backend: Backend, kind: KindName) -> list[Standing]:
    """Without the rounds since the last turn: they depend on the size of the ring, which a claim finds out."""
    found = await backend.tenants.standings(kind)
    return [replace(each, rounds_without_processing=0, current_priority=0) for each in found]


async def _ids(backend: Backend, **wanted: Any) -> list[MessageId]:
    page = await backend.reading.messages(MessageFilter(**wanted), limit=1000)
    return [each.id for each in page.rows]


async def claim_order(backend: Backend, clock: StoreClock) -> list[tuple[object, ...]]:
    """The jobs that workers get from here on, turn by turn, until a day later: id, attempts, doubt."""
    order: list[tuple[object, ...]] = []
    for wait in (ZERO, timedelta(minutes=1), timedelta(hours=4)):
        clock.advance(wait)
        while jobs := await claimed(backend.store, limit=3, kinds=KINDS):
            for job in jobs:
                order.append((job.lease.job, job.claims, job.open_attempt, job.attempts))
                await settled(backend.store, job, dead())
    return order
