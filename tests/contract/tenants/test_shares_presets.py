"""Tenants, shares: the retry preset of a job is its template's, else its tenant's, at each claim."""

from carteiro.model import NewMessage, NewTemplate
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, a_tenant
from support.clock import StoreClock, past
from support.steps import LEASE, accepted, claimed, claimed_alone


def _of_type(type_: str, tenant: str = ACME) -> NewMessage:
    return a_message(tenant, template_type=type_)


async def _define(backend: Backend, type_: str, preset: str | None) -> None:
    await backend.templates.define(
        NewTemplate(ACME, type_, "Subject", text="Text", retry_preset=preset)
    )


async def test_preset_of_a_tenant_applies_to_waiting_messages(
    backend: Backend, clock: StoreClock
) -> None:
    """It is read at each claim; without one the settings decide."""
    await accepted(backend.store, a_message(), a_message(BRASA))
    presets = []
    for preset in (None, "classic"):
        await backend.tenants.define([a_tenant(retry_preset=preset)])
        presets.append({job.tenant: job.retry_preset for job in await claimed(backend.store)})
        clock.advance(past(LEASE))

    assert presets == [{ACME: None, BRASA: None}, {ACME: "classic", BRASA: None}]


async def test_preset_of_a_template_wins(backend: Backend) -> None:
    """That of its newest version; a type without one, an unknown type or another tenant's is its tenant's."""
    await backend.tenants.define([a_tenant(retry_preset="classic"), a_tenant(BRASA)])
    await _define(backend, "welcome", "tickets")
    await _define(backend, "welcome", "pipeline")
    await _define(backend, "plain", None)
    new = [_of_type("welcome"), _of_type("plain"), _of_type("unknown"), a_message()]
    others = _of_type("welcome", BRASA)
    await accepted(backend.store, *new, others)

    presets = {job.lease.job: job.retry_preset for job in await claimed(backend.store)}

    assert [presets[each.id] for each in new] == ["pipeline", "classic", "classic", "classic"]
    assert presets[others.id] is None


async def test_deleted_template_has_no_preset(backend: Backend) -> None:
    """Its messages are sent all the same, with their tenant's."""
    await backend.tenants.define([a_tenant(retry_preset="classic")])
    await _define(backend, "welcome", "tickets")
    await accepted(backend.store, _of_type("welcome"))

    await backend.templates.delete(ACME, "welcome")

    assert (await claimed_alone(backend.store)).retry_preset == "classic"
