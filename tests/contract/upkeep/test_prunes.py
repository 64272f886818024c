"""Upkeep, prunes: bodies and histories of finished messages go after their retention; nothing unfinished ever does."""

from dataclasses import replace
from datetime import timedelta

from carteiro.model import (
    ZERO,
    AcceptAnswer,
    Accepted,
    ApiLimits,
    AuditFilter,
    EventType,
    IdempotencyKey,
    InboxMail,
    KeyConflict,
    MessageId,
    OverLimit,
    Replayed,
    State,
)
from carteiro.ports import Backend
from carteiro.ports.upkeep import Kept, Pruned
from support.builders import ACME, a_message, dead, messages, sent
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place
from support.steps import (
    accepted,
    attempted,
    claimed,
    claimed_and_declared,
    claimed_ids,
    everything_about,
    settled,
)

DAY = timedelta(days=1)


async def _sent_message(backend: Backend) -> MessageId:
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    return message


async def test_body_is_deleted_after_its_retention(backend: Backend, clock: StoreClock) -> None:
    """The row and its timeline stay; a second pass finds nothing."""
    message = await _sent_message(backend)
    events = await backend.reading.events(message)

    clock.advance(DAY - MILLISECOND)
    too_early = await backend.upkeep.prune(bodies=DAY, histories=None)
    clock.advance(MILLISECOND)
    in_time = await backend.upkeep.prune(bodies=DAY, histories=None)
    again = await backend.upkeep.prune(bodies=DAY, histories=None)

    row = await backend.reading.message(message)
    assert [too_early.bodies, in_time.bodies, again.bodies] == [0, 1, 0]
    assert row is not None
    assert (row.content, row.state, row.subject) == (None, State.SENT, "Bom dia")
    assert await backend.reading.events(message) == events


async def test_history_is_deleted_after_its_retention(backend: Backend, clock: StoreClock) -> None:
    """Row, content and events are gone: the id is unknown again."""
    message = await _sent_message(backend)

    clock.advance(DAY)
    pruned = await backend.upkeep.prune(bodies=None, histories=DAY)

    assert (pruned.bodies, pruned.histories) == (0, 1)
    assert await everything_about(backend, message) == (None, [], None)


async def test_retention_counts_from_the_end_of_a_message(
    backend: Backend, clock: StoreClock
) -> None:
    """A message that took long is kept as long as one that did not."""
    [message] = await accepted(backend.store, a_message(ttl=9 * DAY))
    clock.advance(DAY)
    await attempted(backend.store, sent())

    pruned = await backend.upkeep.prune(bodies=DAY, histories=DAY)

    assert (pruned.bodies, pruned.histories) == (0, 0)
    assert await backend.reading.message(message) is not None


async def test_everything_is_kept_without_a_retention(backend: Backend, clock: StoreClock) -> None:
    """None keeps it."""
    message = await _sent_message(backend)
    before = await everything_about(backend, message)

    clock.advance(1000 * DAY)
    pruned = await backend.upkeep.prune(bodies=None, histories=None)

    assert (pruned.bodies, pruned.histories) == (0, 0)
    assert await everything_about(backend, message) == before


async def test_unfinished_message_is_never_pruned(backend: Backend, clock: StoreClock) -> None:
    """Waiting, scheduled, leased or in doubt: at any age, it is still to be sent."""
    in_doubt = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    waiting = await accepted(
        backend.store, a_message(), a_message(due=clock.at(500 * DAY), ttl=DAY)
    )
    before = [await everything_about(backend, each) for each in [*in_doubt, *waiting]]

    clock.advance(400 * DAY)
    pruned = await backend.upkeep.prune(bodies=DAY, histories=DAY)

    assert (pruned.bodies, pruned.histories) == (0, 0)
    assert [await everything_about(backend, each) for each in [*in_doubt, *waiting]] == before


async def test_dead_letter_keeps_its_message_whole(backend: Backend, clock: StoreClock) -> None:
    """A redrivable message loses neither body nor history; once it is sent, it may."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    clock.advance(30 * DAY)

    kept = await backend.upkeep.prune(bodies=DAY, histories=DAY)
    await backend.dead_letters.redrive([message], by="ana")
    redriven = await backend.upkeep.prune(bodies=DAY, histories=DAY)
    [job] = await claimed(backend.store)
    await settled(backend.store, job, sent())
    clock.advance(DAY)
    gone = await backend.upkeep.prune(bodies=DAY, histories=DAY)

    assert job.content is not None
    assert [kept.histories, redriven.histories, gone.histories] == [0, 0, 1]
    assert [kept.bodies, redriven.bodies] == [0, 0]


async def test_cancelled_message_is_pruned_as_a_sent_one(
    backend: Backend, clock: StoreClock
) -> None:
    """Every end without a dead letter ages."""
    [message] = await accepted(backend.store, a_message())
    await backend.store.cancel([message], tenant=ACME)
    clock.advance(DAY)

    assert (await backend.upkeep.prune(bodies=DAY, histories=None)).bodies == 1


async def test_message_without_its_body_is_still_replayed(
    backend: Backend, clock: StoreClock
) -> None:
    """Fencing and repetition do not need the body."""
    new = a_message()
    await accepted(backend.store, new)
    await attempted(backend.store, sent())
    clock.advance(DAY)
    await backend.upkeep.prune(bodies=DAY, histories=None)

    [answer] = await backend.store.accept([new])

    assert isinstance(answer, Replayed)
    assert await claimed_ids(backend.store) == []


async def test_pruned_id_can_be_accepted_again(backend: Backend, clock: StoreClock) -> None:
    """Beyond its history an id is new: it starts with a new timeline."""
    new = a_message()
    await accepted(backend.store, new)
    await attempted(backend.store, sent())
    clock.advance(DAY)
    await backend.upkeep.prune(bodies=None, histories=DAY)

    [answer] = await backend.store.accept([new])

    events = await backend.reading.events(new.id)
    assert isinstance(answer, Accepted)
    assert [event.type for event in events] == [EventType.ENQUEUED]


async def test_pass_goes_page_by_page(backend: Backend, clock: StoreClock) -> None:
    """Each page has the start of the next; the last one ends the pass."""
    ids = await accepted(backend.store, *messages(5))
    for job in await claimed(backend.store):
        await settled(backend.store, job, sent())
    clock.advance(DAY)

    pages: list[Pruned] = []
    after: MessageId | None = None
    for _ in range(4):
        pages.append(await backend.upkeep.prune(bodies=DAY, histories=None, after=after, limit=2))
        after = pages[-1].after
        if after is None:
            break

    assert [page.after for page in pages] == [ids[1], ids[3], None]
    assert [page.bodies for page in pages] == [2, 2, 1]


async def test_mails_in_the_sandbox_are_deleted_with_the_body(
    backend: Backend, clock: StoreClock
) -> None:
    message = await _sent_message(backend)
    other = InboxMail(MessageId("another"), ACME, "b@example.com", "B", "{}", "id-2")
    await backend.inbox.keep([replace(other, message=message), other])

    clock.advance(DAY)
    await backend.upkeep.prune(bodies=DAY, histories=None)

    assert [mail.message for mail in await backend.inbox.list()] == ["another"]


async def test_mails_in_the_sandbox_have_a_retention_of_their_own(
    backend: Backend, clock: StoreClock
) -> None:
    """From their delivery, oldest first, a page at a time; the contents of their messages stay. It is an audit row."""
    message = await _sent_message(backend)
    mails = [InboxMail(message, ACME, "b@example.com", "B", "{}", f"id-{n}") for n in range(4)]
    await backend.inbox.keep(mails[:3])
    clock.advance(DAY - MILLISECOND)
    await backend.inbox.keep(mails[3:])
    early = await _mails_pruned(backend, Kept(inbox=DAY))
    clock.advance(MILLISECOND)
    kept = await _mails_pruned(backend, Kept())
    pages = [await _mails_pruned(backend, Kept(inbox=DAY), limit=2) for _ in range(3)]

    row = await backend.reading.message(message)
    audit = (await backend.audit.list(AuditFilter(kind="inbox"))).rows
    assert (early, kept, pages) == ((0, False), (0, False), [(2, True), (1, False), (0, False)])
    assert [mail.provider_id for mail in await backend.inbox.list()] == ["id-3"]
    assert row is not None
    assert row.content is not None
    assert [(each.action, each.after) for each in audit] == [("prune", {"inboxMs": 86_400_000})]


async def _mails_pruned(backend: Backend, kept: Kept, limit: int = 1000) -> tuple[int, bool]:
    pruned = await backend.upkeep.prune(bodies=None, histories=None, kept=kept, limit=limit)
    return pruned.inbox, pruned.has_more


# --- idempotency keys -------------------------------------------------------------------------


async def _asked(backend: Backend, digest: str, key: str = "once") -> AcceptAnswer:
    [answer] = await backend.store.accept([a_message(key=IdempotencyKey(key, digest))])
    return answer


async def test_idempotency_keys_are_deleted_after_a_day(
    backend: Backend, clock: StoreClock
) -> None:
    """Without any retention, too; the message stays."""
    first = await _asked(backend, "digest-1")
    clock.advance(DAY - MILLISECOND)
    early = await backend.upkeep.prune(bodies=None, histories=None)
    conflict = await _asked(backend, "digest-2")
    clock.advance(MILLISECOND)
    due = await backend.upkeep.prune(bodies=None, histories=None)
    again = await backend.upkeep.prune(bodies=DAY, histories=DAY)

    assert isinstance(first, Accepted)
    assert [early.keys, due.keys, again.keys] == [0, 1, 0]
    assert conflict == KeyConflict(first.id)
    assert await backend.reading.message(first.id) is not None
    assert isinstance(await _asked(backend, "digest-2"), Accepted)


async def test_keys_are_deleted_page_by_page(backend: Backend, clock: StoreClock) -> None:
    """A full page says that there may be more."""
    for number in range(3):
        await _asked(backend, "digest", f"key-{number}")
    clock.advance(DAY)

    pages = [
        await backend.upkeep.prune(bodies=None, histories=None, limit=2),
        await backend.upkeep.prune(bodies=None, histories=None, limit=2),
    ]

    assert [(page.keys, page.has_more) for page in pages] == [(2, True), (1, False)]


async def test_counts_of_this_minute_outlive_a_prune(backend: Backend, clock: StoreClock) -> None:
    """Only past windows are deleted: a limit is never lifted early."""
    limits = ApiLimits(per_minute=1, per_hour=None, per_day=2)
    [first] = await backend.store.accept([a_message(limits=limits)])
    await backend.upkeep.prune(bodies=None, histories=None)
    [second] = await backend.store.accept([a_message(limits=limits)])
    clock.advance(timedelta(minutes=1))
    await backend.upkeep.prune(bodies=None, histories=None)
    [third] = await backend.store.accept([a_message(limits=limits)])
    clock.advance(timedelta(minutes=1))
    [fourth] = await backend.store.accept([a_message(limits=limits)])

    assert isinstance(first, Accepted)
    assert isinstance(second, OverLimit)
    assert isinstance(third, Accepted)
    assert isinstance(fourth, OverLimit)


# --- space ------------------------------------------------------------------------------------


async def _pruned(backend: Backend) -> None:
    """Prune until there is no more."""
    while (await backend.upkeep.prune(bodies=ZERO, histories=None)).has_more:
        pass


async def _cancelled(backend: Backend, count: int) -> None:
    """This many finished messages of some size."""
    ids = await accepted(backend.store, *messages(count, content="x" * 20_000))
    await backend.store.cancel(ids, tenant=ACME)


def _bytes_of(place: Place) -> int:
    return sum(each.stat().st_size for each in place.folder.iterdir())


async def test_freed_space_is_given_back_to_the_disk(file_place: Place) -> None:
    """All but a little, which is soon filled again; the rest reads as before."""
    async with file_place.opened() as backend:
        await _cancelled(backend, 400)
    full = _bytes_of(file_place)

    async with file_place.opened() as backend:
        [kept] = await accepted(backend.store, a_message())
        await _pruned(backend)
        row = await backend.reading.message(kept)

    assert full > 400 * 20_000
    assert _bytes_of(file_place) < full / 5
    assert row is not None
    assert row.content is not None


async def test_all_free_space_can_be_given_back_at_once(place: Place) -> None:
    """Compacting returns its size."""
    async with place.opened() as backend:
        await _cancelled(backend, 400)
        await backend.upkeep.prune(bodies=ZERO, histories=None)

        given_back = await backend.upkeep.compact()

        [again] = await accepted(backend.store, a_message())
        assert await claimed_ids(backend.store) == [again]
    assert given_back > 0
    assert _bytes_of(place) < 1_000_000


async def test_store_without_free_space_gives_nothing_back(backend: Backend) -> None:
    """It is as small as it can be."""
    await accepted(backend.store, a_message())
    await backend.upkeep.compact()

    assert await backend.upkeep.compact() == 0
