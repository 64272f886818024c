"""Reading, faithful: a recipient is upserted when its message is accepted, and read as it was told."""

from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.model import Accepted, Fairness, NewRecipient, Recipient, RecipientId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, a_tenant, an_id
from support.clock import StoreClock
from support.set_ups import SetUp
from support.steps import accepted, claimed_alone


async def _told(backend: Backend, recipient: NewRecipient, tenant: str = ACME) -> RecipientId:
    """Accept a message to this recipient; the id that the store knows it by."""
    [answer] = await backend.store.accept([a_message(tenant, recipient=recipient)])
    assert isinstance(answer, Accepted)
    assert answer.recipient_id is not None
    return answer.recipient_id


async def _read(backend: Backend, recipient: RecipientId) -> Recipient:
    found = await backend.reading.recipient(recipient, tenant=ACME)
    assert found is not None
    return found


async def test_a_new_recipient_is_read_as_it_was_told(backend: Backend, clock: StoreClock) -> None:
    """Every field, under an id of its own."""
    known = await _told(
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


async def test_a_recipient_is_known_by_its_external_id(backend: Backend, clock: StoreClock) -> None:
    """What is told anew counts, what is not told stays."""
    first = await _told(
        backend, NewRecipient("ana@example.com", external_id="ana", nome="Ana", razao_social="ME")
    )
    clock.advance(timedelta(days=1))
    again = NewRecipient(
        "ana@new.example.com", external_id="ana", cpf_cnpj_hash="hash-1", nome="Ana Maria"
    )

    second = await _told(backend, again)

    row = await _read(backend, first)
    assert second == first
    assert row.email == "ana@new.example.com"
    assert (row.cpf_cnpj_hash, row.nome, row.razao_social) == ("hash-1", "Ana Maria", "ME")
    assert row.created_at == clock.at(-timedelta(days=1))


async def test_a_recipient_without_an_external_id_is_known_by_its_document(
    backend: Backend,
) -> None:
    """The document's hash is the second way to know somebody."""
    first = await _told(backend, NewRecipient("ana@example.com", cpf_cnpj_hash="hash-1"))
    second = await _told(backend, NewRecipient("ana@new.example.com", cpf_cnpj_hash="hash-1"))

    assert second == first
    assert (await _read(backend, first)).email == "ana@new.example.com"


async def test_an_external_id_wins_over_the_document(backend: Backend) -> None:
    """Two external ids are two recipients, though they share a document."""
    first = await _told(
        backend, NewRecipient("a@example.com", external_id="a", cpf_cnpj_hash="hash-1")
    )
    second = await _told(
        backend, NewRecipient("b@example.com", external_id="b", cpf_cnpj_hash="hash-1")
    )

    assert second != first
    assert (await _read(backend, first)).email == "a@example.com"


async def test_tenants_do_not_share_recipients(backend: Backend) -> None:
    """The same external id of another tenant is somebody else."""
    ours = await _told(backend, NewRecipient("ana@example.com", external_id="ana"))
    theirs = await _told(backend, NewRecipient("ana@other.example.com", external_id="ana"), BRASA)

    assert theirs != ours
    assert (await _read(backend, ours)).email == "ana@example.com"


async def test_two_messages_of_one_batch_meet_the_same_recipient(backend: Backend) -> None:
    """The second item sees what the first one wrote."""
    ana = NewRecipient("ana@example.com", external_id="ana")

    first, second = await backend.store.accept([a_message(recipient=ana), a_message(recipient=ana)])

    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.recipient_id == second.recipient_id


async def test_a_given_id_is_kept_and_changes_nobody(backend: Backend) -> None:
    """Whether it exists is judged later: at accept it is stored as given."""
    known = await _told(backend, NewRecipient("ana@example.com", external_id="ana"))
    given = RecipientId(an_id())

    by_id = await _told(backend, NewRecipient("new@example.com", recipient_id=known))
    unknown = await _told(backend, NewRecipient("new@example.com", recipient_id=given))

    assert (by_id, unknown) == (known, given)
    assert (await _read(backend, known)).email == "ana@example.com"
    assert await backend.reading.recipient(given, tenant=ACME) is None


async def test_a_claim_brings_the_recipient_along(backend: Backend) -> None:
    """The worker needs no second look to judge it."""
    ana = NewRecipient("ana@example.com", external_id="ana")
    await accepted(backend.store, a_message(recipient=ana))

    job = await claimed_alone(backend.store)

    assert job.recipient_id is not None
    assert job.recipient == await _read(backend, job.recipient_id)


async def test_a_claim_brings_no_recipient_that_does_not_exist(backend: Backend) -> None:
    """The id is told, the row is missing: the worker's to judge."""
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
async def test_a_deleted_recipient_is_not_met_again(
    set_up: SetUp, clock: StoreClock, tmp_path: Path, told: NewRecipient
) -> None:
    """Whoever is told of again is somebody new; the deleted one is still read by its id."""
    async with set_up.opens(tmp_path, clock, Fairness()) as backend:
        await backend.tenants.define([a_tenant(ACME)])
        deleted = await _told(backend, told)
        set_up.deletes_recipient(backend, tmp_path, deleted, clock)

        new = await _told(backend, told)

        assert new != deleted
        assert (await _read(backend, deleted)).deleted_at == clock.at()
        assert (await _read(backend, new)).deleted_at is None
