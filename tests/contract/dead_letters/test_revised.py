"""Dead letters, revised: a redrive with a revision sends the new content, if it is redriven and as it was read."""

from dataclasses import replace

import pytest

from carteiro.model import ZERO, NewRecipient, RedriveAnswer, Revision
from carteiro.ports import Backend
from support.builders import ACME, a_message, dead, sent
from support.burying import buried
from support.steps import accepted, attempted, claimed_alone, everything_about

NEW = Revision('{"html":"<p>Novo</p>"}', "rui@example.com", "Novo")


async def test_new_content_is_sent_under_a_new_revision(backend: Backend) -> None:
    """The claimer gets the new content, and the number that makes a new Message-ID of it."""
    message = await buried(backend)

    answers = await backend.dead_letters.redrive([message], by="ana", revision=NEW)

    job = await claimed_alone(backend.store)
    assert answers == [RedriveAnswer.REDRIVEN]
    assert (job.content, job.revision) == (NEW.content, 2)


async def test_ledger_has_the_new_content(backend: Backend) -> None:
    """Address, subject and content are the new ones, and the timeline says so."""
    message = await buried(backend)
    await backend.dead_letters.redrive([message], by="ana", revision=NEW)

    row = await backend.reading.message(message)
    letter = await backend.dead_letters.show(message)
    [*_, last] = await backend.reading.events(message)

    assert row is not None
    assert (row.to, row.subject, row.content, row.revision) == (
        "rui@example.com",
        "Novo",
        NEW.content,
        2,
    )
    assert letter is not None
    assert letter.content == NEW.content
    assert last.metadata["revision"] == 2


async def test_each_revision_counts_one_further(backend: Backend) -> None:
    """A redrive without changes keeps the revision: the same message is sent again."""
    message = await buried(backend)
    await backend.dead_letters.redrive([message], by="ana", revision=NEW)
    await attempted(backend.store, dead())
    await backend.dead_letters.redrive([message], by="ana")
    assert (await attempted(backend.store, dead())).revision == 2

    await backend.dead_letters.redrive([message], by="ana", revision=NEW)

    assert (await claimed_alone(backend.store)).revision == 3


async def test_message_that_is_not_redriven_is_not_revised(backend: Backend) -> None:
    """In flight, sent or unknown: nothing of it changes."""
    [done] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    redriven = await buried(backend)
    await backend.dead_letters.redrive([redriven], by="ana")
    before = [await everything_about(backend, each) for each in (done, redriven)]

    answers = [
        *await backend.dead_letters.redrive([done], by="rui", revision=NEW),
        *await backend.dead_letters.redrive([redriven], by="rui", revision=NEW),
    ]

    assert answers == [RedriveAnswer.NOT_FOUND, RedriveAnswer.ALREADY]
    assert [await everything_about(backend, each) for each in (done, redriven)] == before


async def test_outdated_revision_is_refused(backend: Backend) -> None:
    """Two edit the same letter: the second, who has not seen the first edit, changes nothing."""
    message = await buried(backend)
    first, second = replace(NEW, of=1), Revision("{}", "ana@example.com", "Oi", of=1)
    await backend.dead_letters.redrive([message], by="ana", revision=first)
    await attempted(backend.store, dead())
    before = await everything_about(backend, message)

    refused = await backend.dead_letters.redrive([message], by="rui", revision=second)
    after = await everything_about(backend, message)
    seen = await backend.dead_letters.redrive([message], by="rui", revision=replace(second, of=2))

    assert (refused, seen) == ([RedriveAnswer.CHANGED], [RedriveAnswer.REDRIVEN])
    assert after == before
    assert (await claimed_alone(backend.store)).revision == 3


async def test_revision_is_for_one_message(backend: Backend) -> None:
    """The same content for many would be a mistake: refused, and nothing is changed."""
    first, second = await buried(backend), await buried(backend)
    before = [await everything_about(backend, each) for each in (first, second)]

    with pytest.raises(ValueError, match="one message"):
        await backend.dead_letters.redrive([first, second], by="ana", revision=NEW)

    assert [await everything_about(backend, each) for each in (first, second)] == before


async def test_revision_has_its_recipient(backend: Backend) -> None:
    """Looked up as at accept: by the tenant's id for it, with the new address."""
    told = NewRecipient("ana@example.con", external_id="c-1")
    message = await buried(backend, to="ana@example.con", recipient=told)
    before = await backend.reading.message(message)
    right = Revision(
        "{}", "ana@example.com", "Oi", NewRecipient("ana@example.com", external_id="c-1")
    )

    await backend.dead_letters.redrive([message], by="ana", revision=right)

    job = await claimed_alone(backend.store)
    assert before is not None
    assert job.recipient_id == before.recipient_id
    assert job.recipient is not None
    assert (job.recipient.email, job.recipient.tenant) == ("ana@example.com", ACME)


async def test_revision_may_have_no_known_recipient(backend: Backend) -> None:
    """Then none can prevent it."""
    message = await buried(backend, recipient=NewRecipient("ana@example.com", external_id="c-1"))

    await backend.dead_letters.redrive([message], by="ana", revision=NEW)

    assert (await claimed_alone(backend.store)).recipient_id is None


async def test_revision_brings_content_to_a_message_without_one(backend: Backend) -> None:
    """A pruned body cannot be sent again, but another can replace it."""
    message = await buried(backend)
    await backend.dead_letters.drop([message])
    await _prune_bodies(backend)

    answers = await backend.dead_letters.redrive([message], by="ana", revision=NEW)

    assert answers == [RedriveAnswer.REDRIVEN]
    assert (await claimed_alone(backend.store)).content == NEW.content


async def _prune_bodies(backend: Backend) -> None:
    pruned = await backend.upkeep.prune(bodies=ZERO, histories=None)
    assert pruned.bodies == 1
