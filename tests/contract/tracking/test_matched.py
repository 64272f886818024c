"""Tracking, matched: a report that contradicts the message's tenant or provider changes nothing."""

from datetime import timedelta
from typing import Any

import pytest

from carteiro.model import DeadReason, MessageId, NoteAnswer, State, TenantId
from carteiro.policy.tags import tag_value
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, dead, retry, sent
from support.clock import StoreClock
from support.feedback import a_bounce, a_feedback
from support.steps import accepted, claimed_and_declared, everything_about, settled

SECOND = timedelta(seconds=1)


async def _told(backend: Backend, message: MessageId, **changes: Any) -> NoteAnswer:
    [answer] = await backend.tracking.note([a_bounce(message, **changes)])
    return answer


async def _sent_through(backend: Backend, provider: str, tenant: str = ACME) -> MessageId:
    [message] = await accepted(backend.store, a_message(tenant))
    job = await claimed_and_declared(backend.store, provider=provider)
    await settled(backend.store, job, sent())
    return message


@pytest.mark.parametrize(
    ("carrier", "teller", "answer"),
    [
        ("ses:eu-west-1", "ses", NoteAnswer.NOTED),
        ("ses", "resend", NoteAnswer.IGNORED),
        ("resend", "ses", NoteAnswer.IGNORED),
        ("resend", "resend", NoteAnswer.NOTED),
        ("sandbox", "ses", NoteAnswer.IGNORED),
        ("smtp", "ses", NoteAnswer.NOTED),  # a relay may be SES' own
    ],
)
async def test_only_the_provider_of_a_message_can_report_on_it(
    backend: Backend, carrier: str, teller: str, answer: NoteAnswer
) -> None:
    """Another's report neither suppresses an address nor is on the timeline."""
    message = await _sent_through(backend, carrier)
    before = await everything_about(backend, message)

    assert await _told(backend, message, provider=teller, relays=("smtp",)) is answer

    is_same = await everything_about(backend, message) == before
    listed = (await backend.suppressions.list(ACME)).rows
    assert is_same is (answer is NoteAnswer.IGNORED)
    assert bool(listed) is not is_same


@pytest.mark.parametrize("tenant", [ACME, "Açaí & Co_"])
async def test_tag_of_another_tenant_is_not_believed(backend: Backend, tenant: str) -> None:
    """One of its own tenant is, with any name; and so is a report without one."""
    await backend.tenants.ensure([TenantId(tenant)])
    message = await _sent_through(backend, "ses", tenant)
    before = await everything_about(backend, message)
    other = await _told(backend, message, provider="ses", tenant_tag=tag_value(BRASA))
    is_same = await everything_about(backend, message) == before
    own = await _told(backend, message, provider="ses", tenant_tag=tag_value(tenant))
    untold = await _told(backend, message, provider="ses", event_id="another")

    assert (other, is_same) == (NoteAnswer.IGNORED, True)
    assert (own, untold) == (NoteAnswer.NOTED, NoteAnswer.NOTED)


@pytest.mark.parametrize("wrong", [{"provider": "resend"}, {"tenant_tag": "another"}])
async def test_doubt_is_not_resolved_by_another_provider(
    backend: Backend, wrong: dict[str, str]
) -> None:
    """It stays a dead letter."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store, provider="ses")
    await settled(backend.store, job, dead(DeadReason.IN_DOUBT), in_doubt=1)

    assert await _told(backend, message, **({"provider": "ses"} | wrong)) is NoteAnswer.IGNORED

    row = await backend.reading.message(message)
    assert row is not None
    assert row.state is State.FAILED
    assert await backend.dead_letters.show(message) is not None


async def test_earlier_provider_of_a_message_can_report_on_it(
    backend: Backend, clock: StoreClock
) -> None:
    """Its doubt is resolved by its report, also after an attempt with another."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store, provider="ses")
    await settled(backend.store, job, retry(SECOND, charged=False), in_doubt=1)
    clock.advance(SECOND)
    job = await claimed_and_declared(backend.store, provider="resend")
    await settled(backend.store, job, retry(timedelta(minutes=5)))

    answers = await backend.tracking.note([a_feedback(message, provider="ses")])

    assert answers == [NoteAnswer.RESOLVED]
