"""Audit, recorded: every change leaves a row, in the transaction of the change; a refused one leaves none."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from carteiro.errors import DomainClaimed, TierUnknown
from carteiro.model import (
    EMAIL,
    Actor,
    ApiLimits,
    AuditFilter,
    AuditRow,
    Fairness,
    KeyId,
    NewRecipient,
    NewSuppression,
    Revision,
    Role,
    SendLimit,
    SuppressionReason,
    TenantId,
    Via,
)
from carteiro.ports import Backend
from carteiro.runtime.acting import act_as, acting_as
from support.builders import ACME, BRASA, a_message, a_tenant, sent
from support.burying import buried
from support.clock import StoreClock
from support.steps import accepted, accepted_recipient, added_key, attempted
from support.templates import defined

ANA = Actor(Via.API, "ana", "192.0.2.7", KeyId("key-1"))
UPKEEP = Actor(Via.UPKEEP, "upkeep", "worker-1")


async def rows(backend: Backend, **wanted: Any) -> list[AuditRow]:
    """The rows of Ana, newest first."""
    return (await backend.audit.list(AuditFilter(**{"who": "ana"} | wanted))).rows


async def told(backend: Backend) -> list[tuple[str, str, str, str | None]]:
    """Action, kind, object and tenant of each row of Ana, oldest first."""
    return [(r.action, r.kind, r.object, r.tenant) for r in reversed(await rows(backend))]


async def test_row_says_who_when_and_from_where(backend: Backend, clock: StoreClock) -> None:
    """And what was before and after; the clock is the store's."""
    clock.advance(timedelta(seconds=7))
    with acting_as(ANA):
        await backend.tenants.define([a_tenant(cap=3, limits=ApiLimits(1, None, 5))])

    [row] = await rows(backend)
    limits = {"perMinute": 1, "perHour": None, "perDay": 5}
    expected = (
        "set",
        "tenant",
        ACME,
        ACME,
        {"cap": None, "limits": None},
        {"cap": 3, "limits": limits},
    )
    assert (row.via, row.who, row.key_id, row.origin) == (Via.API, "ana", "key-1", "192.0.2.7")
    assert (row.action, row.kind, row.object, row.tenant, row.before, row.after) == expected
    assert row.at == clock.at()


async def test_tenant_that_its_first_message_creates_has_a_row(backend: Backend) -> None:
    """A known one has none."""
    new = TenantId("cedro")
    with acting_as(ANA):
        await backend.tenants.ensure([ACME, new])
        await backend.tenants.ensure([new])

    assert await told(backend) == [("add", "tenant", new, new)]


async def test_every_change_of_a_tenant_has_its_word(backend: Backend) -> None:
    """As the command line calls it; defining it as it is changes nothing, and leaves no row."""
    steps: list[dict[str, Any]] = [
        {"paused": True},
        {},
        {"disabled": True},
        {},
        {"weight": 2.0, "paused": True},
    ]
    with acting_as(ANA):
        await backend.tenants.define([a_tenant("novo")])
        for changes in steps:
            await backend.tenants.define([a_tenant("novo", **changes)])
            await backend.tenants.define([a_tenant("novo", **changes)])
        while (erased := await backend.tenants.erase(a_tenant("novo").id)) and erased.has_more:
            pass

    words = [action for action, *_ in await told(backend)]
    assert words == ["add", "pause", "resume", "disable", "enable", "set", "disable", "erase"]


async def test_every_port_records_its_changes(backend: Backend) -> None:
    """Keys, tokens, templates, recipients, suppressions, dead letters, and the rules of turns."""
    person = await accepted_recipient(backend, NewRecipient("ana@example.com", external_id="a"))
    await attempted(backend.store, sent())
    other = await accepted_recipient(backend, NewRecipient("bia@example.com", external_id="b"))
    await attempted(backend.store, sent("2"))
    dead, edited, dropped = [await buried(backend) for _ in range(3)]
    [letter] = [await backend.dead_letters.show(dropped)]
    assert letter is not None
    act_as(ANA)
    key = await added_key(backend, "ck_key", name="shop")
    token = await added_key(backend, "ca_tok", tenant=None, name="bia", role=Role.VIEWER)
    await backend.keys.revoke([key.id], tenant=ACME)
    await backend.keys.revoke([token.id], tenant=None)
    await defined(backend, "welcome")
    await backend.templates.delete(ACME, "welcome")
    manual = NewSuppression("caio@example.com", SuppressionReason.MANUAL)
    await backend.suppressions.put([manual], tenant=ACME)
    await backend.suppressions.remove(["caio@example.com"], tenant=ACME)
    await backend.recipients.delete(person, tenant=ACME)
    await backend.recipients.erase(other, tenant=ACME)
    await backend.dead_letters.redrive([dead], by="ana")
    revision = Revision("{}", None, "new", fields=("subject",))
    await backend.dead_letters.redrive([edited], by="ana", revision=revision)
    await backend.dead_letters.drop([dropped])
    await backend.dead_letters.restore([letter])
    await backend.tenants.weigh_tier("gold", 4.0)
    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=2))
    await backend.tenants.tune(None)
    await backend.tenants.limit(EMAIL, SendLimit(10, timedelta(seconds=1)))
    await backend.audit.note("cancel", "message", "m-1", round=0, tenant=ACME)

    assert await told(backend) == [
        ("add", "key", key.id, ACME),
        ("add", "token", token.id, None),
        ("revoke", "key", key.id, ACME),
        ("revoke", "token", token.id, None),
        ("put", "template", "welcome", ACME),
        ("delete", "template", "welcome", ACME),
        ("add", "suppression", "", ACME),
        ("rm", "suppression", "", ACME),
        ("delete", "recipient", person, ACME),
        ("delete", "recipient", other, ACME),
        ("erase", "recipient", other, ACME),
        ("redrive", "dead letter", dead, ACME),
        ("edit", "dead letter", edited, ACME),
        ("purge", "dead letter", dropped, ACME),
        ("import", "dead letter", dropped, ACME),
        ("set", "tier", "gold", None),
        ("set", "fairness", "", None),
        ("set", "fairness", "", None),
        ("set", "send limit", EMAIL, None),
        ("cancel", "message", "m-1", ACME),
    ]
    [row] = await rows(backend, action="edit")
    assert row.after == {"fields": ["subject"]}


async def test_repeated_note_is_one_row_for_each_actor_and_round(backend: Backend) -> None:
    """Also if what was before differs: those that lose a race leave none."""
    note = backend.audit.note
    bia = Actor(Via.API, "bia", "192.0.2.7", KeyId("key-2"))
    with acting_as(ANA):
        await asyncio.gather(*(note("cancel", "message", "m-1", round=0) for _ in range(8)))
        await note("cancel", "message", "m-1", round=0, before={"status": "processing"})
        await note("cancel", "message", "m-1", round=1)
        await note("cancel", "message", "m-2", round=0)
    with acting_as(bia):
        await note("cancel", "message", "m-1", round=0)

    assert sorted(each.object for each in await rows(backend)) == ["m-1", "m-1", "m-2"]
    assert [each.object for each in await rows(backend, who="bia")] == ["m-1"]


async def test_dead_letters_of_several_tenants_are_a_row_for_each(backend: Backend) -> None:
    """With their number and ids: a tenant's rows name no other's messages."""
    ours = [await buried(backend) for _ in range(2)]
    theirs = await buried(backend, BRASA)
    with acting_as(ANA):
        await backend.dead_letters.redrive([*ours, theirs], by="ana")

    found = {row.tenant: row for row in await rows(backend)}
    assert found[ACME].after["count"] == 2
    assert set(found[ACME].after["ids"]) == set(ours)
    assert (found[BRASA].object, found[BRASA].after) == (theirs, {})


async def _claim(backend: Backend) -> None:
    await backend.tenants.define([a_tenant(from_domains=("brasa.example",))])


async def _unknown_tier(backend: Backend) -> None:
    await backend.tenants.define([a_tenant(tier="glod")])


@pytest.mark.parametrize(
    ("change", "refusal"), [(_claim, DomainClaimed), (_unknown_tier, TierUnknown)]
)
async def test_refused_change_leaves_no_row(
    backend: Backend, change: Callable[[Backend], Awaitable[None]], refusal: type[Exception]
) -> None:
    """It changed nothing."""
    await backend.tenants.define([a_tenant(BRASA, from_domains=("brasa.example",))])
    with acting_as(ANA):
        with pytest.raises(refusal):
            await change(backend)
        await backend.templates.delete(ACME, "unknown")
        await backend.keys.revoke([KeyId("unknown")], tenant=ACME)
        await backend.suppressions.remove(["nobody@example.com"], tenant=ACME)

    assert await rows(backend) == []


async def test_change_whose_row_cannot_be_written_is_undone(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both or neither: the row is part of the transaction."""
    before = await backend.tenants.find([ACME])

    def broken(_: object) -> str:
        raise RuntimeError("no row today")

    monkeypatch.setattr("carteiro.stores.sql.audit.harmless", broken)
    with pytest.raises(Exception, match="no row today"):
        await backend.tenants.define([a_tenant(cap=3)])
    with pytest.raises(Exception, match="no row today"):
        await added_key(backend, "ck_key")
    monkeypatch.undo()

    assert await backend.tenants.find([ACME]) == before
    assert await backend.keys.list(ACME) == []


async def test_two_administrators_at_once_leave_a_chain(backend: Backend) -> None:
    """Each row begins where the one before it ended, in any order."""

    async def change(who: str, cap: int) -> None:
        act_as(Actor(Via.API, who, "192.0.2.1"))
        await backend.tenants.define([a_tenant(cap=cap)])

    await asyncio.gather(*(change(("ana", "bia")[n % 2], n + 1) for n in range(12)))

    found = (await backend.audit.list(AuditFilter(kind="tenant", object=ACME, action="set"))).rows
    steps = {row.before["cap"]: row.after["cap"] for row in found}
    [end] = set(steps.values()) - set(steps)
    [now] = await backend.tenants.find([ACME])
    walked, place = 0, None
    while place in steps:
        place, walked = steps[place], walked + 1
    assert now is not None
    assert (walked, place, end) == (12, now.cap, now.cap)
    assert {row.who for row in found} == {"ana", "bia"}


async def test_upkeep_has_one_row_a_day_for_each_kind_of_change(
    backend: Backend, clock: StoreClock
) -> None:
    """With the settings in force: deleting by retention all day long does not fill the list."""
    for _ in range(3):
        await accepted(backend.store, a_message())
        await attempted(backend.store, sent())
    with acting_as(UPKEEP):
        for number in range(3):
            clock.advance(timedelta(hours=1) if number < 2 else timedelta(days=1))
            dead = await buried(backend)
            await backend.dead_letters.drop([dead])
            await backend.upkeep.prune(bodies=timedelta(0), histories=None)

    found = (await backend.audit.list(AuditFilter(who="upkeep"))).rows
    assert sorted((row.action, row.kind) for row in found) == [
        ("prune", "messages"),
        ("prune", "messages"),
        ("purge", "dead letter"),
        ("purge", "dead letter"),
    ]
    [settings, _] = [row.after for row in found if row.action == "prune"]
    assert settings == {"bodiesMs": 0, "historyMs": None}


async def test_sending_leaves_no_rows(backend: Backend) -> None:
    """Messages have a history of their own; so do addresses that bounced."""
    before = len((await backend.audit.list(AuditFilter())).rows)
    with acting_as(ANA):
        await accepted(backend.store, a_message())
        await attempted(backend.store, sent())
        ids = await accepted(backend.store, a_message())
        await backend.store.cancel(ids, tenant=ACME)
        bounced = NewSuppression("caio@example.com", SuppressionReason.HARD_BOUNCE)
        await backend.suppressions.put([bounced], tenant=ACME)
        await backend.tenants.ensure([ACME])

    assert len((await backend.audit.list(AuditFilter())).rows) == before
