"""Templates, versioned: a version never changes; the newest one is found unless another is named."""

from datetime import timedelta
from typing import Any

from carteiro.model import NewTemplate, Template, TenantId, TenantUnknown
from carteiro.ports import Backend
from support.builders import ACME
from support.clock import StoreClock

NOBODY = TenantId("nobody")


async def _defined(backend: Backend, type: str = "welcome", **changes: Any) -> Template:
    fields: dict[str, Any] = {"subject": "Oi", "html": "<p>Oi</p>"} | changes
    template = await backend.templates.define(NewTemplate(ACME, type, **fields))
    assert isinstance(template, Template)
    return template


async def test_a_template_is_kept_as_it_was_written(backend: Backend, clock: StoreClock) -> None:
    """Every field, numbered and dated."""
    new = NewTemplate(ACME, "welcome", "Olá {{ nome }}", "<p>Olá</p>", "Olá", "transactional")

    defined = await backend.templates.define(new)

    assert defined == Template(
        ACME, "welcome", 1, "Olá {{ nome }}", "<p>Olá</p>", "Olá", "transactional", clock.at()
    )
    assert await backend.templates.find(ACME, "welcome") == defined


async def test_each_change_is_a_new_version(backend: Backend, clock: StoreClock) -> None:
    """The newest is found, the older ones by their number, each as it was."""
    first = await _defined(backend)
    clock.advance(timedelta(seconds=1))
    second = await _defined(backend, subject="Bom dia", html=None, text="Bom dia")

    assert (first.version, second.version) == (1, 2)
    assert await backend.templates.find(ACME, "welcome") == second
    assert await backend.templates.find(ACME, "welcome", version=1) == first
    assert await backend.templates.find(ACME, "welcome", version=2) == second
    assert await backend.templates.versions(ACME, "welcome") == [second, first]


async def test_what_is_not_there_is_not_found(backend: Backend) -> None:
    """An unknown type has no version, a known one only its own."""
    await _defined(backend)
    templates = backend.templates

    assert await templates.find(ACME, "other") is None
    assert await templates.find(ACME, "other", version=1) is None
    assert [await templates.find(ACME, "welcome", version=each) for each in (-1, 0, 2)] == [
        None
    ] * 3
    assert await templates.versions(ACME, "other") == []


async def test_the_newest_of_each_type_is_listed(backend: Backend) -> None:
    """By type, deleted ones left out."""
    await _defined(backend, "welcome")
    newest = await _defined(backend, "welcome")
    await _defined(backend, "gone")
    await backend.templates.delete(ACME, "gone")
    confirmation = await _defined(backend, "confirmation")

    assert await backend.templates.list(ACME) == [confirmation, newest]


async def test_a_deleted_type_is_out_of_use(backend: Backend) -> None:
    """It is found no more, but what was made of it can still be looked up by its number."""
    first, second = await _defined(backend), await _defined(backend)

    assert await backend.templates.delete(ACME, "welcome")

    assert await backend.templates.find(ACME, "welcome") is None
    assert await backend.templates.find(ACME, "welcome", version=2) == second
    assert await backend.templates.versions(ACME, "welcome") == [second, first]


async def test_only_what_is_in_use_can_be_deleted(backend: Backend) -> None:
    """A second delete, and one of an unknown type, change nothing and say so."""
    await _defined(backend)

    answers = [
        await backend.templates.delete(ACME, each) for each in ("welcome", "welcome", "none")
    ]

    assert answers == [True, False, False]


async def test_a_deleted_type_goes_on_counting(backend: Backend) -> None:
    """Two contents never share a version."""
    await _defined(backend)
    await backend.templates.delete(ACME, "welcome")

    again = await _defined(backend, subject="De novo")

    assert again.version == 2
    assert await backend.templates.find(ACME, "welcome") == again
    assert await backend.templates.delete(ACME, "welcome")


async def test_an_unknown_tenant_has_no_templates(backend: Backend) -> None:
    """Nothing is written for somebody who is not there."""
    answer = await backend.templates.define(NewTemplate(NOBODY, "welcome", "Oi", "<p>Oi</p>"))

    assert answer == TenantUnknown(NOBODY)
    assert await backend.templates.list(NOBODY) == []
