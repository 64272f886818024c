"""Suppressions, erased: of a person the hash stays, of a tenant nothing."""

from carteiro.model import NewRecipient, NewSuppression, SuppressionReason
from carteiro.ports import Backend
from support.builders import ACME, BRASA, tenants_named
from support.steps import accepted_recipient

ANA = "Ana@example.com"


async def test_erased_person_stays_suppressed_by_a_hash(backend: Backend) -> None:
    """The address cannot be read, and is not sent to; it can still be removed."""
    for tenant in (ACME, BRASA):
        new = NewSuppression(ANA, SuppressionReason.COMPLAINT)
        await backend.suppressions.put([new], tenant=tenant)
    ana = await accepted_recipient(backend, NewRecipient(ANA, external_id="ana"), to=ANA)

    await backend.recipients.erase(ana, tenant=ACME)

    [left] = (await backend.suppressions.list(ACME)).rows
    [others] = (await backend.suppressions.list(BRASA)).rows
    assert (left.address, left.reason) == (None, SuppressionReason.COMPLAINT)
    assert others.address == ANA
    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]
    assert await backend.suppressions.remove([ANA], tenant=ACME) == 1


async def test_list_of_a_tenant_is_erased_with_it(backend: Backend) -> None:
    """A later tenant of its name begins with an empty one; in pages, like the rest."""
    new = [NewSuppression(f"{each}@example.com", SuppressionReason.MANUAL) for each in range(5)]
    for tenant in (ACME, BRASA):
        await backend.suppressions.put(new, tenant=tenant)

    while (erased := await backend.tenants.erase(ACME, limit=2)) is not None and erased.has_more:
        pass
    await backend.tenants.define(tenants_named([ACME]))

    assert (await backend.suppressions.list(ACME)).rows == []
    assert len((await backend.suppressions.list(BRASA)).rows) == 5
