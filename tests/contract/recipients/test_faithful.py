"""Recipients, faithful: created and changed at acceptance, read as last given, by their own tenant alone."""

from datetime import timedelta

import pytest

from carteiro.model import Accepted, IdempotencyKey, NewRecipient, Recipient, RecipientId, Replayed
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, an_id
from support.clock import StoreClock
from support.steps import accepted, accepted_recipient, claimed_alone


async def _read(backend: Backend, recipient: RecipientId) -> Recipient:
    found = await backend.recipients.show(recipient, tenant=ACME)
    assert found is not None
    return found


async def test_new_recipient_is_read_as_it_was_accepted(
    backend: Backend, clock: StoreClock
) -> None:
    """Every field, under a new id."""
    known = await accepted_recipient(
        backend,
        NewRecipient(
            "ana@example.com",
            external_id="ana",
            cpf_cnpj_hash="hash-1",
            razao_social="Ana ME",
            nome="Ana",
        ),
    )

    assert await _read(backend, known) == Recipient(
        id=known,
        tenant=ACME,
        email="ana@example.com",
        external_id="ana",
        cpf_cnpj_hash="hash-1",
        razao_social="Ana ME",
        nome="Ana",
        created_at=clock.at(),
        deleted_at=None,
    )


async def test_recipient_is_known_by_its_external_id(backend: Backend, clock: StoreClock) -> None:
    """New values count, missing ones stay."""
    first = await accepted_recipient(
        backend, NewRecipient("ana@example.com", external_id="ana", nome="Ana", razao_social="ME")
    )
    clock.advance(timedelta(days=1))
    again = NewRecipient(
        "ana@new.example.com", external_id="ana", cpf_cnpj_hash="hash-1", nome="Ana Maria"
    )

    second = await accepted_recipient(backend, again)

    row = await _read(backend, first)
    assert second == first
    assert row.email == "ana@new.example.com"
    assert (row.cpf_cnpj_hash, row.nome, row.razao_social) == ("hash-1", "Ana Maria", "ME")
    assert row.created_at == clock.at(-timedelta(days=1))


async def test_recipient_without_an_external_id_is_known_by_its_document(
    backend: Backend,
) -> None:
    """By the document's hash."""
    first = await accepted_recipient(
        backend, NewRecipient("ana@example.com", cpf_cnpj_hash="hash-1")
    )
    second = await accepted_recipient(
        backend, NewRecipient("ana@new.example.com", cpf_cnpj_hash="hash-1")
    )

    assert second == first
    assert (await _read(backend, first)).email == "ana@new.example.com"


async def test_external_id_wins_over_the_document(backend: Backend) -> None:
    """Two external ids are two recipients, though they share a document."""
    first = await accepted_recipient(
        backend, NewRecipient("a@example.com", external_id="a", cpf_cnpj_hash="hash-1")
    )
    second = await accepted_recipient(
        backend, NewRecipient("b@example.com", external_id="b", cpf_cnpj_hash="hash-1")
    )

    assert second != first
    assert (await _read(backend, first)).email == "a@example.com"


async def test_tenants_do_not_share_recipients(backend: Backend) -> None:
    """The same external id of another tenant is another recipient."""
    ours = await accepted_recipient(backend, NewRecipient("ana@example.com", external_id="ana"))
    theirs = await accepted_recipient(
        backend, NewRecipient("ana@other.example.com", external_id="ana"), BRASA
    )

    assert theirs != ours
    assert (await _read(backend, ours)).email == "ana@example.com"


async def test_two_messages_of_one_batch_have_the_same_recipient(backend: Backend) -> None:
    """The second item sees the write of the first one."""
    ana = NewRecipient("ana@example.com", external_id="ana")

    first, second = await backend.store.accept([a_message(recipient=ana), a_message(recipient=ana)])

    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.recipient_id == second.recipient_id


async def test_repetition_in_one_batch_is_answered_with_the_recipient(backend: Backend) -> None:
    """As if it had come later, and its idempotency key stands for the same answer."""
    ana = NewRecipient("ana@example.com", external_id="ana")
    key = IdempotencyKey("key-1", "digest")
    new = a_message(recipient=ana, key=key)

    first, *others = await backend.store.accept([new, new, a_message(recipient=ana, key=key)])
    [later] = await backend.store.accept([a_message(recipient=ana, key=key)])

    assert isinstance(first, Accepted)
    assert first.recipient_id is not None
    told = Replayed(new.id, first.received_at, first.recipient_id, new.request_id)
    assert [*others, later] == [told] * 3


async def test_given_id_is_kept_and_changes_no_recipient(backend: Backend) -> None:
    """Its existence is checked later: at accept it is stored as given."""
    known = await accepted_recipient(backend, NewRecipient("ana@example.com", external_id="ana"))
    given = RecipientId(an_id())

    by_id = await accepted_recipient(backend, NewRecipient("new@example.com", recipient_id=known))
    unknown = await accepted_recipient(backend, NewRecipient("new@example.com", recipient_id=given))

    assert (by_id, unknown) == (known, given)
    assert (await _read(backend, known)).email == "ana@example.com"
    assert await backend.recipients.show(given, tenant=ACME) is None


async def test_claim_includes_the_recipient(backend: Backend) -> None:
    """The worker needs no second query."""
    ana = NewRecipient("ana@example.com", external_id="ana")
    await accepted(backend.store, a_message(recipient=ana))

    job = await claimed_alone(backend.store)

    assert job.recipient_id is not None
    assert job.recipient == await _read(backend, job.recipient_id)


async def test_claim_includes_no_missing_recipient(backend: Backend) -> None:
    """The id is there, the row is missing: the worker decides."""
    given = RecipientId(an_id())
    unknown = NewRecipient("ana@example.com", recipient_id=given)
    await accepted(backend.store, a_message(recipient=unknown))

    job = await claimed_alone(backend.store)

    assert (job.recipient_id, job.recipient) == (given, None)


@pytest.mark.parametrize(
    "told",
    [
        NewRecipient("ana@example.com", external_id="ana"),
        NewRecipient("ana@example.com", cpf_cnpj_hash="hash-1"),
    ],
    ids=["external id", "document"],
)
async def test_deleted_recipient_is_not_reused(
    backend: Backend, clock: StoreClock, told: NewRecipient
) -> None:
    """The same data creates a new one; the deleted one is still read by its id."""
    deleted = await accepted_recipient(backend, told)
    await backend.recipients.delete(deleted, tenant=ACME)

    new = await accepted_recipient(backend, told)

    assert new != deleted
    assert (await _read(backend, deleted)).deleted_at == clock.at()
    assert (await _read(backend, new)).deleted_at is None


async def test_recipient_is_found_by_its_own_tenant_alone(backend: Backend) -> None:
    """Two tenants may send to one address and know nothing of each other."""
    known = await accepted_recipient(backend, NewRecipient("ana@example.com", external_id="ana"))
    show = backend.recipients.show

    assert await show(known, tenant=ACME) is not None
    assert await show(known, tenant=BRASA) is None
    assert await show(RecipientId("unknown"), tenant=ACME) is None
