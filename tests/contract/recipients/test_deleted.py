"""Recipients, deleted: a deleted recipient stays, with its time; messages to it fail."""

from datetime import timedelta

from carteiro.jobs.confirmation import Unfit
from carteiro.model import NewRecipient, RecipientId
from carteiro.path.confirm import confirm
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.steps import accepted_recipient, claimed_alone

ANA = NewRecipient("ana@example.com", external_id="ana")


async def test_deleted_recipient_stays_with_its_time(backend: Backend, clock: StoreClock) -> None:
    """The first delete counts; a second one finds nothing to do."""
    ana = await accepted_recipient(backend, ANA)

    first = await backend.recipients.delete(ana, tenant=ACME)
    clock.advance(timedelta(days=1))
    second = await backend.recipients.delete(ana, tenant=ACME)

    row = await backend.recipients.show(ana, tenant=ACME)
    assert (first, second) == (True, False)
    assert row is not None
    assert (row.email, row.deleted_at) == ("ana@example.com", clock.at(-timedelta(days=1)))


async def test_only_its_own_tenant_deletes_it(backend: Backend) -> None:
    """Another's is answered like an unknown one."""
    ana = await accepted_recipient(backend, ANA)

    assert not await backend.recipients.delete(ana, tenant=BRASA)
    assert not await backend.recipients.delete(RecipientId("unknown"), tenant=ACME)
    assert (await backend.recipients.show(ana, tenant=ACME)).deleted_at is None  # type: ignore[union-attr]


async def test_message_to_a_deleted_recipient_fails(backend: Backend) -> None:
    """A claim shows the deletion, and the worker does not send."""
    ana = await accepted_recipient(
        backend, ANA, content='{"to":"ana@example.com","subject":"Bom dia","html":"<p>Oi</p>"}'
    )
    await backend.recipients.delete(ana, tenant=ACME)

    judged = confirm(await claimed_alone(backend.store))

    assert isinstance(judged, Unfit)
    assert judged.failure.code == "RECIPIENT_NOT_FOUND"
