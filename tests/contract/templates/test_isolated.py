"""Templates, isolated: a tenant's templates are its own."""

from carteiro.model import NewTemplate, Template, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA


async def _defined(backend: Backend, tenant: TenantId, subject: str) -> Template:
    template = await backend.templates.define(NewTemplate(tenant, "welcome", subject, "<p>Oi</p>"))
    assert isinstance(template, Template)
    return template


async def test_two_tenants_may_use_one_name(backend: Backend) -> None:
    """Each finds its own, and each counts for itself."""
    await _defined(backend, ACME, "Oi")
    ours = await _defined(backend, ACME, "Oi!")
    theirs = await _defined(backend, BRASA, "Olá")

    assert theirs.version == 1
    assert await backend.templates.find(ACME, "welcome") == ours
    assert await backend.templates.find(BRASA, "welcome") == theirs
    assert await backend.templates.find(BRASA, "welcome", version=2) is None
    assert await backend.templates.list(BRASA) == [theirs]
    assert await backend.templates.versions(BRASA, "welcome") == [theirs]


async def test_a_delete_touches_nobody_else(backend: Backend) -> None:
    """What one tenant takes out of use stays in use for another."""
    await _defined(backend, ACME, "Oi")
    theirs = await _defined(backend, BRASA, "Olá")

    await backend.templates.delete(ACME, "welcome")

    assert await backend.templates.find(BRASA, "welcome") == theirs
