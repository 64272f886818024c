"""Store, once: a key commits with its message: asked again it is replayed, for another request it conflicts."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

from carteiro.model import (
    Accepted,
    IdempotencyKey,
    KeyConflict,
    NewMessage,
    NewRecipient,
    Replayed,
    State,
    TenantDisabled,
    TenantUnknown,
)
from carteiro.ports import Backend, Store
from support.builders import ACME, BRASA, a_message, a_tenant, an_id, sent
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place
from support.steps import accepted, attempted, claimed_ids, everything_about

KEPT_FOR = timedelta(hours=24)


def keyed(key: str = "order-1", digest: str = "digest-1", **changes: Any) -> NewMessage:
    """A message under a key; ``changes`` are those of `a_message`."""
    return a_message(key=IdempotencyKey(key, digest), **changes)


async def test_same_request_gets_the_first_answer(backend: Backend, clock: StoreClock) -> None:
    """Same key, same digest: the first message with its time, recipient and request, and nothing is written."""
    recipient = NewRecipient("ana@example.com", external_id="ana")
    first = keyed(request_id="first", recipient=recipient)
    [answer] = await backend.store.accept([first])
    before = await everything_about(backend, first.id)
    clock.advance(timedelta(hours=1))

    again = keyed(request_id="again", recipient=recipient)
    [replayed] = await backend.store.accept([again])

    assert isinstance(answer, Accepted)
    assert answer.recipient_id is not None
    assert replayed == Replayed(first.id, answer.received_at, answer.recipient_id, "first")
    assert await backend.reading.message(again.id) is None
    assert await everything_about(backend, first.id) == before
    assert await claimed_ids(backend.store) == [first.id]


async def test_another_request_under_the_same_key_conflicts(backend: Backend) -> None:
    """The answer names the message of the key; nothing is written, and the key is not changed."""
    first, other = keyed(), keyed(digest="digest-2")
    await accepted(backend.store, first)

    [conflict] = await backend.store.accept([other])
    [replayed] = await backend.store.accept([keyed()])

    assert conflict == KeyConflict(first.id)
    assert await backend.reading.message(other.id) is None
    assert isinstance(replayed, Replayed)
    assert replayed.id == first.id


async def test_key_belongs_to_its_tenant(store: Store) -> None:
    """Two tenants may use one key for different requests."""
    first, second = keyed(tenant=ACME), keyed(tenant=BRASA, digest="digest-2")

    assert await accepted(store, first, second) == [first.id, second.id]


async def test_equal_keys_of_one_batch_are_one_message(store: Store) -> None:
    """The first is accepted; those behind it are replayed or conflict, as if they had come later."""
    first, same, other, free = keyed(), keyed(), keyed(digest="digest-2"), keyed("order-2")

    answers = await store.accept([first, same, other, free])

    [taken, replayed, conflict, also_taken] = answers
    assert isinstance(taken, Accepted)
    assert replayed == Replayed(first.id, taken.received_at, None, first.request_id)
    assert conflict == KeyConflict(first.id)
    assert isinstance(also_taken, Accepted)
    assert await claimed_ids(store) == [first.id, free.id]


async def test_key_stands_for_its_request_for_a_day(store: Store, clock: StoreClock) -> None:
    """Until the last moment of it; then it is as new, for another request too."""
    first = keyed()
    await accepted(store, first)

    clock.advance(KEPT_FOR - MILLISECOND)
    [still] = await store.accept([keyed(digest="digest-2")])
    clock.advance(MILLISECOND)
    second = keyed(digest="digest-2")
    [as_new] = await store.accept([second])
    [again] = await store.accept([keyed()])

    assert still == KeyConflict(first.id)
    assert isinstance(as_new, Accepted)
    assert again == KeyConflict(second.id)


async def test_replay_does_not_lengthen_the_life_of_a_key(store: Store, clock: StoreClock) -> None:
    """A day from its commit, at any number of replays."""
    await accepted(store, keyed())
    clock.advance(KEPT_FOR / 2)
    await store.accept([keyed()])
    clock.advance(KEPT_FOR / 2)

    [answer] = await store.accept([keyed()])

    assert isinstance(answer, Accepted)


async def test_key_answers_for_a_pruned_message(backend: Backend, clock: StoreClock) -> None:
    """A message that was sent and pruned within the day must not be sent again."""
    first = keyed()
    await accepted(backend.store, first)
    await attempted(backend.store, sent())
    clock.advance(timedelta(hours=2))
    await backend.upkeep.prune(bodies=timedelta(hours=1), histories=timedelta(hours=1))

    [answer] = await backend.store.accept([keyed()])

    assert await backend.reading.message(first.id) is None
    assert isinstance(answer, Replayed)
    assert (answer.id, answer.request_id) == (first.id, first.request_id)


async def test_refused_message_leaves_its_key_free(backend: Backend) -> None:
    """Unknown or disabled tenants and known ids commit no key."""
    known = a_message()
    await accepted(backend.store, known)
    await backend.tenants.define([a_tenant(BRASA, disabled=True)])

    answers = await backend.store.accept(
        [keyed(tenant="nobody"), keyed(tenant=BRASA), keyed(id=known.id)]
    )
    await backend.tenants.define([a_tenant("nobody"), a_tenant(BRASA)])

    assert [type(each) for each in answers] == [TenantUnknown, TenantDisabled, Replayed]
    await accepted(backend.store, keyed(tenant="nobody"), keyed(tenant=BRASA), keyed())


async def test_known_id_comes_before_its_key(store: Store) -> None:
    """The answer to a repeated message is its own, with any state of its key."""
    first, second = a_message(), keyed()
    await accepted(store, first, second)

    [answer] = await store.accept([keyed(id=first.id, digest="digest-2")])

    assert isinstance(answer, Replayed)
    assert answer.id == first.id


async def test_concurrent_equal_requests_are_one_message(store: Store) -> None:
    """One is accepted, and all of them get its answer."""
    new = [keyed(id=an_id()) for _ in range(64)]

    answers = [answer for [answer] in await asyncio.gather(*(store.accept([each]) for each in new))]

    assert Counter(type(each) for each in answers) == {Accepted: 1, Replayed: 63}
    [first] = await claimed_ids(store)
    assert {each.id for each in answers if isinstance(each, Accepted | Replayed)} == {first}


async def test_meaning_of_a_key_can_be_read(backend: Backend, clock: StoreClock) -> None:
    """Of the same tenant and request alone, while it is valid; reading writes nothing."""
    recipient = NewRecipient("ana@example.com", external_id="ana")
    [taken] = await backend.store.accept([keyed(request_id="first", recipient=recipient)])
    key = IdempotencyKey("order-1", "digest-1")

    clock.advance(KEPT_FOR - MILLISECOND)
    found = await backend.reading.first(key, tenant=ACME)
    others = [
        await backend.reading.first(key, tenant=BRASA),
        await backend.reading.first(IdempotencyKey("order-2", "digest-1"), tenant=ACME),
        await backend.reading.first(IdempotencyKey("order-1", "digest-2"), tenant=ACME),
    ]
    clock.advance(MILLISECOND)
    late = await backend.reading.first(key, tenant=ACME)

    assert isinstance(taken, Accepted)
    assert found == Replayed(taken.id, taken.received_at, taken.recipient_id, "first")
    assert [*others, late] == [None] * 4
    assert await backend.reading.states() == {State.ENQUEUED: 1}


async def test_key_is_known_to_every_opener(place: Place) -> None:
    """A later or parallel process replays the acceptance of another."""
    first = keyed()
    async with place.opened() as one, place.opened() as other:
        await accepted(one.store, first)
        [beside] = await other.store.accept([keyed()])
    async with place.opened() as later:
        [after] = await later.store.accept([keyed(digest="digest-2")])

    assert isinstance(beside, Replayed)
    assert beside.id == first.id
    assert after == KeyConflict(first.id)
