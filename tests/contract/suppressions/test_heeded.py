"""Suppressions, heeded: a claim has the suppressed addresses of an e-mail."""

from collections.abc import Mapping
from typing import Any

import orjson

from carteiro.jobs.confirmation import Confirmed, Unfit
from carteiro.model import NewMessage, NewSuppression, SuppressionReason
from carteiro.path.confirm import confirm
from carteiro.ports import Backend
from support.builders import ACME, BRASA, TASK, a_message, a_task
from support.steps import accepted, claimed, claimed_alone


def _to(to: str, tenant: str = ACME, copies: Mapping[str, Any] | None = None) -> NewMessage:
    content = {"to": to, "subject": "Bom dia", "html": "<p>Oi</p>", **(copies or {})}
    return a_message(tenant, to=to, content=orjson.dumps(content).decode())


async def _suppress(backend: Backend, *addresses: str) -> None:
    new = [NewSuppression(each, SuppressionReason.MANUAL) for each in addresses]
    await backend.suppressions.put(new, tenant=ACME)


async def test_claim_without_suppressions_has_none(backend: Backend) -> None:
    await accepted(backend.store, _to("ana@example.com"))

    assert (await claimed_alone(backend.store)).suppressed == frozenset()


async def test_suppressed_recipient_is_not_sent_to(backend: Backend) -> None:
    """It is a permanent fault of the recipient."""
    await _suppress(backend, "ANA@example.com")
    await accepted(backend.store, _to("ana@example.com"))

    judged = confirm(await claimed_alone(backend.store))

    assert isinstance(judged, Unfit)
    assert (judged.validation, judged.failure.code) == ("RECIPIENT", "SUPPRESSED")
    assert (judged.failure.retryable, judged.failure.scope) == (False, "recipient")


async def test_suppressed_copy_is_left_out(backend: Backend) -> None:
    """The mail goes to the others."""
    await _suppress(backend, "bia@example.com", "caio@example.com")
    copies = {"cc": ["bia@example.com", "dora@example.com"], "bcc": ["caio@example.com"]}
    await accepted(backend.store, _to("ana@example.com", copies=copies))

    judged = confirm(await claimed_alone(backend.store))

    assert isinstance(judged, Confirmed)
    assert (judged.email.to, judged.email.cc) == ("ana@example.com", ("dora@example.com",))
    assert judged.email.bcc == ()
    assert judged.left_out == ("bia@example.com", "caio@example.com")


async def test_each_tenant_has_its_own_list(backend: Backend) -> None:
    """In one claim, too."""
    await _suppress(backend, "ana@example.com")
    await accepted(backend.store, _to("ana@example.com"), _to("ana@example.com", BRASA))
    await accepted(backend.store, _to("bia@example.com"))

    told = {
        (job.tenant, tuple(sorted(job.suppressed)))
        for job in await claimed(backend.store, limit=10)
    }

    assert told == {(ACME, ("ana@example.com",)), (BRASA, ()), (ACME, ())}


async def test_content_that_is_not_an_email_has_no_recipients(backend: Backend) -> None:
    """A task may have any content, and unreadable content is checked elsewhere."""
    await _suppress(backend, "ana@example.com")
    odd = ['["ana@example.com"]', "no JSON", '{"to":7,"cc":"ana@example.com"}']
    await accepted(backend.store, *[a_message(content=each) for each in odd])
    await accepted(backend.store, a_task(content='{"to":"ana@example.com"}'))

    jobs = await claimed(backend.store, limit=10) + await claimed(backend.store, kinds=[TASK])

    assert [job.suppressed for job in jobs] == [frozenset()] * 4
