"""Reading, listed: pages follow each other without gaps or duplicates; every part of a filter counts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.errors import BadCursor
from carteiro.model import (
    EMAIL,
    Cursor,
    MessageFilter,
    MessageId,
    NewMessage,
    NewRecipient,
    Sent,
    State,
    StoredMessage,
    Verdict,
)
from carteiro.ports import Backend
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    dead,
    messages,
    retry,
    sent,
    tenants_named,
)
from support.clock import MILLISECOND, StoreClock
from support.set_ups import PROPERTY, SetUp
from support.steps import accepted, attempted, claimed, claimed_and_declared, settled

ANYTHING = MessageFilter()
A_DAY = timedelta(days=1)


async def _listed(
    backend: Backend, wanted: MessageFilter = ANYTHING, *, limit: int = 100
) -> list[StoredMessage]:
    """Every page, one behind the other."""
    rows: list[StoredMessage] = []
    cursor: Cursor | None = None
    while True:
        page = await backend.reading.messages(wanted, cursor=cursor, limit=limit)
        rows += page.rows
        if page.next is None:
            return rows
        cursor = page.next


async def _ids(backend: Backend, **wanted: Any) -> list[MessageId]:
    """Ids of all that match; ``wanted`` are fields of `MessageFilter`."""
    return [row.id for row in await _listed(backend, MessageFilter(**wanted))]


async def test_newest_comes_first(backend: Backend, clock: StoreClock) -> None:
    """By the time of acceptance, and a batch in its order."""
    first, second = await accepted(backend.store, *messages(2))
    clock.advance(MILLISECOND)
    [third] = await accepted(backend.store, a_message())
    clock.back(timedelta(hours=1))
    [of_a_wrong_clock] = await accepted(backend.store, a_message())

    assert await _ids(backend) == [third, second, first, of_a_wrong_clock]


async def test_row_is_the_message_without_its_content(backend: Backend) -> None:
    """All else is what `message` reads."""
    [message] = await accepted(
        backend.store,
        a_message(external_id="order-1", tags=("a", "b"), template_type="WELCOME"),
    )
    alone = await backend.reading.message(message)

    [row] = await _listed(backend)

    assert alone is not None
    assert alone.content is not None
    assert row == replace(alone, content=None)


async def test_page_has_the_cursor_of_the_next_one(backend: Backend) -> None:
    """The last page has none, also when it is full."""
    ids = await accepted(backend.store, *messages(4))

    first = await backend.reading.messages(ANYTHING, limit=2)
    second = await backend.reading.messages(ANYTHING, cursor=first.next, limit=2)

    assert [row.id for row in first.rows + second.rows] == ids[::-1]
    assert first.next is not None
    assert second.next is None


async def test_new_messages_move_no_page(backend: Backend) -> None:
    """A page starts behind a message, not after a number of them."""
    ids = await accepted(backend.store, *messages(4))
    first = await backend.reading.messages(ANYTHING, limit=2)

    await accepted(backend.store, *messages(3))
    second = await backend.reading.messages(ANYTHING, cursor=first.next, limit=2)

    assert [row.id for row in second.rows] == ids[1::-1]


async def test_cursor_fits_into_a_url(backend: Backend) -> None:
    """Letters, digits, minus and underscore need no escape."""
    await accepted(backend.store, *messages(2))

    page = await backend.reading.messages(ANYTHING, limit=1)

    assert page.next is not None
    assert page.next.replace("-", "").replace("_", "").isalnum()


async def test_a_cursor_that_no_list_gave_out_is_refused(backend: Backend) -> None:
    """Nothing, noise, and well-formed texts that stand for no row."""
    for cursor in ("", "?", "é", "WzFd", "bnVsbA", "WyJhIiwxXQ", "WzEsMl0", "WzEsIlx1MDAwMCJd"):
        with pytest.raises(BadCursor):
            await backend.reading.messages(ANYTHING, cursor=Cursor(cursor))


# --- filters ----------------------------------------------------------------------------------


async def test_list_of_a_tenant_has_its_own_messages(backend: Backend) -> None:
    """Without a tenant those of all."""
    [ours] = await accepted(backend.store, a_message(ACME))
    [theirs] = await accepted(backend.store, a_message(BRASA))

    assert await _ids(backend, tenant=ACME) == [ours]
    assert await _ids(backend, tenant="nobody") == []
    assert await _ids(backend) == [theirs, ours]


async def test_kind_is_listed_alone(backend: Backend) -> None:
    """E-mails are not the only messages."""
    [mail] = await accepted(backend.store, a_message())
    [task] = await accepted(backend.store, a_task())

    assert await _ids(backend, kind=EMAIL) == [mail]
    assert await _ids(backend, kind=TASK, tenant=ACME) == [task]


async def _one_in_each_state(backend: Backend, clock: StoreClock) -> dict[State, MessageId]:
    """A message in every state that one can rest in."""
    store, found = backend.store, {}
    for state, verdict in ((State.SENT, sent()), (State.FAILED, dead())):
        [found[state]] = await accepted(store, a_message())
        await attempted(store, verdict)
    [found[State.RETRY_SCHEDULED]] = await accepted(store, a_message())
    await attempted(store, retry(A_DAY / 2))
    [found[State.EXPIRED]] = await accepted(store, a_message(ttl=MILLISECOND))
    clock.advance(MILLISECOND)
    await backend.upkeep.expire(limit=1)
    [found[State.CANCELLED]] = await accepted(store, a_message())
    await store.cancel([found[State.CANCELLED]], tenant=ACME)
    [found[State.SENT_ATTEMPT]] = await accepted(store, a_message())
    await claimed_and_declared(store)
    [found[State.ENQUEUED]] = await accepted(store, a_message())
    return found


@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}, {"tenant": ACME, "kind": EMAIL}], ids=str)
async def test_state_is_listed_alone(
    backend: Backend, clock: StoreClock, scope: dict[str, Any]
) -> None:
    """Each of them, with and without other filters."""
    found = await _one_in_each_state(backend, clock)

    listed = {state: await _ids(backend, state=state, **scope) for state in found}

    assert listed == {state: [message] for state, message in found.items()}


@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}], ids=str)
async def test_attempt_in_doubt_is_listed_as_an_attempt(
    backend: Backend, clock: StoreClock, scope: dict[str, Any]
) -> None:
    """Its worker is gone, its job is ready again: it is an open attempt all the same."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    clock.advance(A_DAY / 24)
    await backend.store.reap(limit=10)

    assert await _ids(backend, state=State.SENT_ATTEMPT, **scope) == [message]


@pytest.mark.parametrize(
    ("field", "own", "other"),
    [
        ("to", a_message(to="bia@example.com"), "ana@example.co"),
        ("external_id", a_message(external_id="order-1"), "order-2"),
        ("tag", a_message(tags=("welcome", "spring")), "summer"),
        (
            "recipient_external_id",
            a_message(recipient=NewRecipient("bia@example.com", external_id="bia")),
            "ana",
        ),
    ],
)
@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}], ids=str)
async def test_messages_are_found_by_the_senders_fields(
    backend: Backend, field: str, own: NewMessage, other: str, scope: dict[str, Any]
) -> None:
    """The whole text counts, and only of the given tenant."""
    written = {"recipient_external_id": "bia", "tag": "spring"}.get(field) or getattr(own, field)
    await accepted(backend.store, a_message(), own, a_message(BRASA))

    assert await _ids(backend, **{field: written}, **scope) == [own.id]
    assert await _ids(backend, **{field: other}, **scope) == []
    assert await _ids(backend, **{field: written}, tenant=BRASA) == []


@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}], ids=str)
async def test_messages_are_found_by_the_code_of_their_failure(
    backend: Backend, scope: dict[str, Any]
) -> None:
    """Ours, or the provider's; also while a retry waits, and only as a whole."""
    buried, later, fine = await accepted(backend.store, *messages(3))
    failure = replace(dead().failure, code="MAILBOX_UNKNOWN", original_code="550 5.1.1")
    for job in await claimed(backend.store, limit=3):
        verdicts: dict[MessageId, Verdict] = {
            buried: replace(dead(), failure=failure),
            later: replace(retry(A_DAY), failure=failure),
            fine: sent(),
        }
        await settled(backend.store, job, verdicts[job.lease.job])

    for code in ("MAILBOX_UNKNOWN", "550 5.1.1"):
        assert await _ids(backend, code=code, **scope) == [later, buried]
        assert await _ids(backend, code=code, state=State.FAILED, **scope) == [buried]
    assert await _ids(backend, code="550", **scope) == []


@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}], ids=str)
async def test_messages_are_found_by_their_provider_id(
    backend: Backend, scope: dict[str, Any]
) -> None:
    """By the whole id and by the tenant: two providers may give the same one."""
    [ours] = await accepted(backend.store, a_message())
    assert await _ids(backend, provider_id="taken-1", **scope) == []

    await attempted(backend.store, Sent("ses", "taken-1"))
    [theirs] = await accepted(backend.store, a_message(BRASA))
    await attempted(backend.store, Sent("resend", "taken-1"))
    await accepted(backend.store, a_message())
    await attempted(backend.store, Sent("ses", "taken-2"))

    everybodys = [theirs, ours]
    assert await _ids(backend, provider_id="taken-1", **scope) == everybodys[bool(scope) :]
    assert await _ids(backend, provider_id="taken-1", tenant=BRASA) == [theirs]
    assert await _ids(backend, provider_id="taken-1", state=State.FAILED, **scope) == []
    assert await _ids(backend, provider_id="taken", **scope) == []


async def test_erased_message_is_not_found_by_its_provider_id(backend: Backend) -> None:
    """Neither by the old value nor by the remaining one."""
    person = NewRecipient("bia@example.com", external_id="bia")
    [message] = await accepted(backend.store, a_message(recipient=person, to="bia@example.com"))
    await attempted(backend.store, Sent("ses", "taken-1"))
    row = await backend.reading.message(message)
    assert row is not None
    assert row.recipient_id is not None

    await backend.recipients.erase(row.recipient_id, tenant=ACME)

    assert await _ids(backend, provider_id="taken-1", tenant=ACME) == []
    assert await _ids(backend, provider_id="", tenant=ACME) == []
    assert await _ids(backend, state=State.SENT, tenant=ACME) == [message]


async def test_page_goes_on_where_the_message_of_its_cursor_was_deleted(
    backend: Backend, clock: StoreClock
) -> None:
    """Accepted in one batch, so that time alone is not enough: nothing is missed, and nothing comes twice."""
    ids = await accepted(backend.store, *messages(5))
    await settled(backend.store, (await claimed(backend.store, limit=5))[2], sent())
    first = await backend.reading.messages(MessageFilter(tenant=ACME), limit=3)
    clock.advance(A_DAY / 2)
    await backend.upkeep.prune(bodies=None, histories=A_DAY / 4)

    second = await backend.reading.messages(MessageFilter(tenant=ACME), cursor=first.next)
    everybodys = await backend.reading.messages(ANYTHING, cursor=first.next)

    assert await backend.reading.message(ids[2]) is None
    assert [row.id for row in first.rows] == ids[:1:-1]
    assert [row.id for row in second.rows] == ids[1::-1]
    assert everybodys == second


async def test_recipient_is_found_under_each_of_its_lives(backend: Backend) -> None:
    """Deleted and created again it is two recipients, with one external id."""
    bia = NewRecipient("bia@example.com", external_id="bia")
    [first] = await accepted(backend.store, a_message(recipient=bia))
    row = await backend.reading.message(first)
    assert row is not None
    assert row.recipient_id is not None
    await backend.recipients.delete(row.recipient_id, tenant=ACME)
    [second] = await accepted(backend.store, a_message(recipient=bia))
    [theirs] = await accepted(backend.store, a_message(BRASA, recipient=bia))

    assert await _ids(backend, recipient_external_id="bia") == [theirs, second, first]
    assert await _ids(backend, recipient_external_id="bia", tenant=ACME) == [second, first]


async def test_time_range_includes_its_start_and_excludes_its_end(
    backend: Backend, clock: StoreClock
) -> None:
    """So that adjacent ranges share nothing and miss nothing."""
    ids = []
    for _ in range(3):
        ids += await accepted(backend.store, a_message())
        clock.advance(MILLISECOND)
    first, last = clock.at(-3 * MILLISECOND), clock.at(-MILLISECOND)

    assert await _ids(backend, created_after=first, created_before=last) == [ids[1], ids[0]]
    assert await _ids(backend, created_after=last, tenant=ACME) == [ids[2]]
    assert await _ids(backend, created_before=first) == []
    assert await _ids(backend, created_after=last + MILLISECOND / 2) == []


async def test_pruned_message_is_not_listed(backend: Backend, clock: StoreClock) -> None:
    """Neither by its tag nor by anything else."""
    await accepted(backend.store, a_message(tags=("spring",), external_id="order-1"))
    await attempted(backend.store, sent())
    clock.advance(A_DAY)
    await backend.upkeep.prune(bodies=None, histories=A_DAY)

    assert await _ids(backend, tag="spring", tenant=ACME) == []
    assert await _ids(backend, external_id="order-1") == []
    assert await _ids(backend) == []


# --- all at once ------------------------------------------------------------------------------

_FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "tenant": st.sampled_from([ACME, BRASA]),
        "kind": st.sampled_from([EMAIL, TASK]),
        "state": st.sampled_from([State.ENQUEUED, State.SENT, State.FAILED, State.SENT_ATTEMPT]),
        "to": st.sampled_from(["ana@example.com", "bia@example.com"]),
        "external_id": st.sampled_from(["order-1", "order-2"]),
        "provider_id": st.sampled_from(["provider-1", "none"]),
        "recipient_external_id": st.sampled_from(["ana", "bia"]),
        "tag": st.sampled_from(["spring", "summer"]),
        "code": st.sampled_from([dead().failure.code, "none"]),
    },
)


def _mixed(index: int) -> NewMessage:
    tenant = (ACME, BRASA)[index % 2]
    if index % 5 == 0:
        return a_task(tenant, tags=("spring",))
    name = ("ana", "bia")[index // 2 % 2]
    return a_message(
        tenant,
        to=f"{name}@example.com",
        external_id=f"order-{index // 3 % 3}",
        recipient=NewRecipient(f"{name}@example.com", external_id=name) if index % 3 else None,
        tags=(("spring",), ("summer", "spring"), ())[index % 3],
    )


@PROPERTY
@given(fields=_FILTERS, limit=st.integers(1, 7))
async def test_any_filter_in_pages_of_any_size_gives_all_matches(
    set_up: SetUp, fields: dict[str, Any], limit: int
) -> None:
    """As if every message were checked."""
    clock = StoreClock()
    async with set_up.opened(clock) as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        new = [_mixed(index) for index in range(30)]
        for index, each in enumerate(new):
            await accepted(backend.store, each)
            clock.advance(index % 2 * MILLISECOND)
        for index, job in enumerate(await claimed(backend.store, limit=12)):
            if index % 3:
                await settled(backend.store, job, dead() if index % 2 else sent())
        everything = {row.id: row for row in await _listed(backend)}

        rows = await _listed(backend, MessageFilter(**fields), limit=limit)

        asked = {each.id: each for each in new}
        matching = [row for row in everything.values() if _matches(row, asked[row.id], fields)]
        assert [row.id for row in rows] == [row.id for row in matching]


def _matches(row: StoredMessage, asked: NewMessage, fields: dict[str, Any]) -> bool:
    said = {
        "recipient_external_id": asked.recipient and asked.recipient.external_id,
        "code": row.failure and row.failure.code,
    }
    return all(
        wanted in row.tags if name == "tag" else wanted == said.get(name, getattr(row, name, None))
        for name, wanted in fields.items()
    )
