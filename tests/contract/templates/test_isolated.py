"""Templates, isolated: a tenant's templates are its own."""

from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.templates import defined, summary_of


async def test_two_tenants_may_use_one_name(backend: Backend) -> None:
    """Each finds its own, and each is counted separately."""
    await defined(backend, subject="Oi")
    ours = await defined(backend, subject="Oi!")
    theirs = await defined(backend, tenant=BRASA, subject="Olá")

    assert theirs.version == 1
    assert await backend.templates.find(ACME, "welcome") == ours
    assert await backend.templates.find(BRASA, "welcome") == theirs
    assert await backend.templates.find(BRASA, "welcome", version=2) is None
    assert await backend.templates.list(BRASA) == [summary_of(theirs)]
    assert await backend.templates.versions(BRASA, "welcome") == [summary_of(theirs)]


async def test_delete_affects_no_other_tenant(backend: Backend) -> None:
    """A type deleted by one tenant stays in use for another."""
    await defined(backend, subject="Oi")
    theirs = await defined(backend, tenant=BRASA, subject="Olá")

    await backend.templates.delete(ACME, "welcome")

    assert await backend.templates.find(BRASA, "welcome") == theirs
