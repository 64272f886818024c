"""Dead letters, kept: every message that ends FAILED or EXPIRED has exactly one entry with the reason."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carteiro.model import EMAIL, ZERO, DeadLetter, DeadReason, MessageId
from carteiro.policy.grouping import group_of
from carteiro.ports import Backend
from support.builders import ACME, TTL, a_message, dead, retry, sent
from support.burying import buried, found
from support.clock import StoreClock
from support.set_ups import DEAD_LETTER_TTL
from support.steps import accepted, attempted, claimed_alone, claimed_and_declared, settled


async def test_dead_letter_has_the_whole_story(backend: Backend, clock: StoreClock) -> None:
    """Tenant, content, reason and time of the failure, attempts, and retention."""
    accepted_at = clock.at()
    new = a_message(content='{"html":"<p>Olá</p>"}')
    await accepted(backend.store, new)
    await attempted(backend.store, retry(timedelta(seconds=1)))
    clock.advance(timedelta(seconds=1))
    verdict = dead(DeadReason.MAX_ATTEMPTS_EXCEEDED)
    await attempted(backend.store, verdict)

    assert await backend.dead_letters.show(new.id) == DeadLetter(
        id=new.id,
        tenant=ACME,
        kind=EMAIL,
        content='{"html":"<p>Olá</p>"}',
        reason=DeadReason.MAX_ATTEMPTS_EXCEEDED,
        failed_attempts=2,
        failure=verdict.failure,
        failed_at=clock.at(),
        enqueued_at=accepted_at,
        moved_at=clock.at(),
        ttl=DEAD_LETTER_TTL,
        redriven_at=None,
        group=group_of("sandbox", verdict.failure),
    )


@pytest.mark.parametrize("reason", DeadReason)
async def test_every_reason_is_kept(backend: Backend, reason: DeadReason) -> None:
    """The worker's reason is the one that people read."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    await settled(backend.store, job, dead(reason, charged=False))

    letter = await backend.dead_letters.show(message)

    assert letter is not None
    assert (letter.reason, letter.failed_attempts) == (reason, 0)


@pytest.mark.parametrize("reason", DeadReason)
async def test_possibly_delivered_message_is_in_doubt_with_any_cause(
    backend: Backend, clock: StoreClock, reason: DeadReason
) -> None:
    """The doubt comes first; the cause is next to it, also on the timeline."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, retry(timedelta(seconds=1), charged=False), in_doubt=1)
    clock.advance(timedelta(seconds=1))
    verdict = dead(reason, charged=False)

    await attempted(backend.store, verdict)

    letter = await backend.dead_letters.show(message)
    [*_, last] = await backend.reading.events(message)
    assert letter is not None
    assert (letter.reason, letter.failure) == (DeadReason.IN_DOUBT, verdict.failure)
    assert last.metadata["reason"] == "in_doubt"
    assert last.metadata.get("endedBy", "in_doubt") == reason.value


async def test_message_that_expires_after_a_doubt_is_in_doubt(
    backend: Backend, clock: StoreClock
) -> None:
    """Also without a claimer."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, retry(TTL / 2, charged=False), in_doubt=1)
    clock.advance(TTL)

    await backend.upkeep.expire(limit=10)

    letter = await backend.dead_letters.show(message)
    assert letter is not None
    assert letter.reason is DeadReason.IN_DOUBT


async def test_expired_message_has_an_entry_with_its_last_failure(
    backend: Backend, clock: StoreClock
) -> None:
    """The failure before its time ran out is kept."""
    [failed] = await accepted(backend.store, a_message())
    verdict = retry(TTL - timedelta(seconds=1))
    await attempted(backend.store, verdict)
    [never_tried] = await accepted(backend.store, a_message())
    clock.advance(TTL)
    await backend.upkeep.expire(limit=10)

    tried = await backend.dead_letters.show(failed)
    untried = await backend.dead_letters.show(never_tried)

    assert tried is not None
    assert (tried.reason, tried.failure) == (DeadReason.EXPIRED, verdict.failure)
    assert tried.failed_attempts == 1
    assert untried is not None
    assert (untried.reason, untried.failure.code) == (DeadReason.EXPIRED, "EXPIRED")
    assert untried.failure.reason


async def test_successful_message_has_no_entry(backend: Backend) -> None:
    """Sent and cancelled messages have none."""
    [done] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    [cancelled] = await accepted(backend.store, a_message())
    await backend.store.cancel([cancelled], tenant=ACME)

    assert await found(backend) == []
    assert await backend.dead_letters.show(done) is None


async def test_new_failure_updates_the_entry(backend: Backend, clock: StoreClock) -> None:
    """One entry per message: the second death replaces the first, and may be redriven again."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead(DeadReason.MAX_ATTEMPTS_EXCEEDED))
    await backend.dead_letters.redrive([message], by="ana")
    clock.advance(timedelta(hours=1))
    await attempted(backend.store, dead(DeadReason.PERMANENT_ERROR))

    [letter] = (await backend.dead_letters.find()).rows

    assert letter.reason is DeadReason.PERMANENT_ERROR
    assert letter.moved_at == clock.at()
    assert letter.redriven_at is None
    assert letter.failed_attempts == 1


async def test_redriven_message_that_is_sent_has_no_entry(backend: Backend) -> None:
    """Sent removes the entry."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    await backend.dead_letters.redrive([message], by="ana")
    await attempted(backend.store, sent())

    assert await backend.dead_letters.show(message) is None
    assert await found(backend) == []


async def test_unknown_message_has_no_entry(backend: Backend) -> None:
    assert await backend.dead_letters.show(MessageId("unknown")) is None


async def test_entry_shows_the_content_in_the_ledger(backend: Backend) -> None:
    """One that was restored after its body was pruned shows none."""
    message = await buried(backend)
    letter = await backend.dead_letters.show(message)
    assert letter is not None
    await backend.dead_letters.drop([message])
    await backend.upkeep.prune(bodies=ZERO, histories=None)
    await backend.dead_letters.restore([letter])

    assert (await backend.dead_letters.find()).rows == [replace(letter, content="")]
