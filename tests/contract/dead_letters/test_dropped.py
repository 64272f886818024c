"""Dead letters, dropped: a dropped or expired entry leaves the index and nothing else; never a redriven one."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import ZERO, DeadLetter, MessageId, RedriveAnswer, State, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, dead, sent, tenants_named
from support.burying import a_letter, buried, found
from support.clock import MILLISECOND, StoreClock
from support.set_ups import DEAD_LETTER_TTL, PROPERTY, SetUp
from support.steps import accepted, attempted, claimed_ids

SECOND = timedelta(seconds=1)
CARGO = TenantId("cargo")


async def _shown(backend: Backend, message: MessageId) -> DeadLetter:
    letter = await backend.dead_letters.show(message)
    assert letter is not None
    return letter


# --- drop -------------------------------------------------------------------------------------


async def test_drop_removes_only_the_index_entry(backend: Backend) -> None:
    """The message is not changed, nor its content and its timeline."""
    message, other = await buried(backend), await buried(backend)
    row, events = await backend.reading.message(message), await backend.reading.events(message)

    dropped = await backend.dead_letters.drop([message, MessageId("unknown"), message])

    assert dropped == 1
    assert await found(backend) == [other]
    assert await backend.reading.message(message) == row
    assert await backend.reading.events(message) == events


async def test_redriven_entry_is_not_dropped(backend: Backend) -> None:
    """It is needed: a new failure updates it, a success removes it."""
    message = await buried(backend)
    await backend.dead_letters.redrive([message], by="ana")

    assert await backend.dead_letters.drop([message]) == 0
    assert await found(backend) == [message]


async def test_dropped_message_can_be_redriven_once(backend: Backend) -> None:
    """The ledger decides: a message without an entry is redriven too, and not twice."""
    message = await buried(backend)
    await backend.dead_letters.drop([message])

    answers = await backend.dead_letters.redrive([message, message], by="ana")

    assert answers == [RedriveAnswer.REDRIVEN, RedriveAnswer.ALREADY]
    assert await backend.dead_letters.redrive([message], by="rui") == [RedriveAnswer.ALREADY]
    assert await claimed_ids(backend.store) == [message]
    assert await found(backend) == []


async def test_dropped_message_that_dies_again_has_an_entry_again(backend: Backend) -> None:
    """It is a new failure."""
    message = await buried(backend)
    await backend.dead_letters.drop([message])
    await backend.dead_letters.redrive([message], by="ana")

    await attempted(backend.store, dead())

    assert await found(backend, is_redriven=False) == [message]


async def test_dropped_message_that_is_sent_stays_without_an_entry(backend: Backend) -> None:
    message = await buried(backend)
    await backend.dead_letters.drop([message])
    await backend.dead_letters.redrive([message], by="ana")

    await attempted(backend.store, sent())

    row = await backend.reading.message(message)
    assert row is not None
    assert row.state is State.SENT
    assert await found(backend) == []


async def test_message_without_its_body_cannot_be_redriven(backend: Backend) -> None:
    """Dropped, then pruned: there is nothing left to send, and the answer says so."""
    message = await buried(backend)
    await backend.dead_letters.drop([message])
    await backend.upkeep.prune(bodies=ZERO, histories=None)

    answers = await backend.dead_letters.redrive([message], by="ana")

    assert answers == [RedriveAnswer.NO_CONTENT]
    row = await backend.reading.message(message)
    assert row is not None
    assert (row.state, row.round) == (State.FAILED, 1)


# --- outlived ---------------------------------------------------------------------------------


async def test_entry_outlives_its_ttl_to_the_millisecond(
    backend: Backend, clock: StoreClock
) -> None:
    """Not before its ttl is over; then the longest outlived comes first."""
    first = await buried(backend)
    clock.advance(SECOND)
    second = await buried(backend)
    clock.advance(DEAD_LETTER_TTL - SECOND - MILLISECOND)
    assert await backend.dead_letters.outlived() == []

    clock.advance(MILLISECOND)
    assert await backend.dead_letters.outlived() == [first]

    clock.advance(SECOND)
    assert await backend.dead_letters.outlived() == [first, second]
    assert await backend.dead_letters.outlived(limit=1) == [first]


async def test_redriven_entry_never_outlives_its_ttl(backend: Backend, clock: StoreClock) -> None:
    """It waits for its end, however long that takes; a new failure starts a new ttl."""
    message = await buried(backend)
    clock.advance(DEAD_LETTER_TTL - SECOND)
    await backend.dead_letters.redrive([message], by="ana")
    clock.advance(SECOND)
    assert await backend.dead_letters.outlived() == []

    await attempted(backend.store, dead())

    assert await backend.dead_letters.outlived() == []
    clock.advance(DEAD_LETTER_TTL)
    assert await backend.dead_letters.outlived() == [message]


# --- overfull ---------------------------------------------------------------------------------


async def _overfull(backend: Backend, most: int, limit: int = 1000) -> list[MessageId]:
    letters = await backend.dead_letters.overfull(most=most, limit=limit)
    return [letter.id for letter in letters]


async def test_largest_tenant_loses_its_oldest_entries(backend: Backend, clock: StoreClock) -> None:
    """One with few entries loses none because of another that has many."""
    quiet = await buried(backend, BRASA)
    loud = []
    for _ in range(4):
        clock.advance(SECOND)
        loud.append(await buried(backend))

    assert await _overfull(backend, most=5) == []
    assert await _overfull(backend, most=4) == loud[:1]
    assert await _overfull(backend, most=2) == loud[:3]
    assert await _overfull(backend, most=2, limit=2) == loud[:2]
    assert await _overfull(backend, most=0) == [quiet, *loud]


async def test_excess_entries_are_returned_without_contents(backend: Backend) -> None:
    """There may be a thousand, of a megabyte each: who archives them reads them one by one."""
    message = await buried(backend, content='{"html":"<p>Olá</p>"}')

    letter = await _shown(backend, message)
    assert await backend.dead_letters.overfull(most=0) == [replace(letter, content="")]


async def test_redriven_entries_are_not_excess(backend: Backend) -> None:
    """They count, but others go instead; if all are redriven, none can."""
    first = await buried(backend)
    second = await buried(backend)
    await backend.dead_letters.redrive([first], by="ana")

    assert await _overfull(backend, most=0) == [second]
    await backend.dead_letters.redrive([second], by="ana")
    assert await _overfull(backend, most=0) == []


@PROPERTY
@given(
    deaths=st.lists(st.sampled_from([ACME, BRASA, CARGO]), min_size=1, max_size=12),
    most=st.integers(0, 12),
)
async def test_dropping_the_excess_levels_the_tenants(
    set_up: SetUp, deaths: list[TenantId], most: int
) -> None:
    """At most that many stay, no tenant lost one while another had more, and each lost its oldest."""
    async with set_up.opened(StoreClock()) as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA, CARGO]))
        ids: dict[TenantId, list[MessageId]] = {each: [] for each in (ACME, BRASA, CARGO)}
        for tenant in deaths:
            ids[tenant].append(await buried(backend, tenant))
        going = await backend.dead_letters.overfull(most=most)
        await backend.dead_letters.drop([letter.id for letter in going])
        left, by_tenant = await backend.dead_letters.sizes(top=3)

    gave: dict[TenantId, list[MessageId]] = {}
    for letter in going:
        gave.setdefault(letter.tenant, []).append(letter.id)
    kept = dict(by_tenant)
    assert left == min(most, len(deaths))
    assert all(ids[tenant][: len(given)] == given for tenant, given in gave.items())
    assert all(kept.get(giver, 0) + 1 >= kept.get(other, 0) for giver in gave for other in kept)


# --- restore ----------------------------------------------------------------------------------


async def test_dropped_entry_can_be_restored(backend: Backend) -> None:
    """As it was, with the content in the ledger; once."""
    message = await buried(backend)
    letter = await _shown(backend, message)
    await backend.dead_letters.drop([message])

    restored = await backend.dead_letters.restore([letter, letter])

    assert restored == 1
    assert await _shown(backend, message) == letter
    assert await backend.dead_letters.restore([letter]) == 0


async def test_only_dead_messages_are_restored(backend: Backend) -> None:
    """Unknown, sent, redriven, or with an entry already: nothing is written."""
    [done] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    redriven, kept = await buried(backend), await buried(backend)
    letters = [await _shown(backend, each) for each in (redriven, kept)]
    await backend.dead_letters.drop([redriven])
    await backend.dead_letters.redrive([redriven], by="ana")
    letters += [replace(letters[0], id=done), a_letter()]

    assert await backend.dead_letters.restore(letters) == 0
    assert await found(backend) == [kept]


async def test_message_of_another_tenant_is_not_restored(backend: Backend) -> None:
    """An entry with the wrong tenant is not believed."""
    message = await buried(backend)
    letter = await _shown(backend, message)
    await backend.dead_letters.drop([message])

    assert await backend.dead_letters.restore([replace(letter, tenant=BRASA)]) == 0
    assert await found(backend) == []


async def test_entry_restored_late_has_a_new_ttl(backend: Backend, clock: StoreClock) -> None:
    """Its ttl ended meanwhile: it must not be dropped at once."""
    message = await buried(backend)
    letter = await _shown(backend, message)
    await backend.dead_letters.drop([message])
    clock.advance(DEAD_LETTER_TTL * 3)

    await backend.dead_letters.restore([letter])

    assert await backend.dead_letters.outlived() == []
    assert (await _shown(backend, message)).moved_at == letter.moved_at
    clock.advance(DEAD_LETTER_TTL)
    assert await backend.dead_letters.outlived() == [message]


async def test_restored_entry_can_be_redriven(backend: Backend) -> None:
    message = await buried(backend)
    letter = await _shown(backend, message)
    await backend.dead_letters.drop([message])
    await backend.dead_letters.restore([replace(letter, redriven_at=letter.moved_at)])

    assert await found(backend, is_redriven=False) == [message]
    assert await backend.dead_letters.redrive([message], by="ana") == [RedriveAnswer.REDRIVEN]
