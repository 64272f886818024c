"""Templates, versioned: what a version says never changes; the newest one is found unless another is named."""

from dataclasses import replace
from datetime import timedelta

from carteiro.model import NewTemplate, Template, TenantId, TenantUnknown
from carteiro.ports import Backend
from support.builders import ACME
from support.clock import StoreClock
from support.templates import defined, summary_of

NOBODY = TenantId("nobody")


async def test_a_template_is_kept_as_it_was_written(backend: Backend, clock: StoreClock) -> None:
    """Every field, numbered and dated."""
    new = NewTemplate(ACME, "welcome", "Olá {{ nome }}", "<p>Olá</p>", "Olá", "transactional")

    written = await backend.templates.define(new)

    assert written == Template(
        ACME, "welcome", 1, "Olá {{ nome }}", "<p>Olá</p>", "Olá", "transactional", clock.at()
    )
    assert await backend.templates.find(ACME, "welcome") == written


async def test_each_change_is_a_new_version(backend: Backend, clock: StoreClock) -> None:
    """The newest is found, the older ones by their number, each as it was."""
    first = await defined(backend)
    clock.advance(timedelta(seconds=1))
    second = await defined(backend, subject="Bom dia", html=None, text="Bom dia")

    assert (first.version, second.version) == (1, 2)
    assert await backend.templates.find(ACME, "welcome") == second
    assert await backend.templates.find(ACME, "welcome", version=1) == first
    assert await backend.templates.find(ACME, "welcome", version=2) == second
    listed = [summary_of(each) for each in (second, first)]
    assert await backend.templates.versions(ACME, "welcome") == listed


async def test_what_is_not_there_is_not_found(backend: Backend) -> None:
    """An unknown type has no version, a known one only its own."""
    await defined(backend)
    templates = backend.templates

    assert await templates.find(ACME, "other") is None
    assert await templates.find(ACME, "other", version=1) is None
    assert [await templates.find(ACME, "welcome", version=each) for each in (-1, 0, 2)] == [
        None
    ] * 3
    assert await templates.versions(ACME, "other") == []


async def test_the_newest_of_each_type_is_listed(backend: Backend) -> None:
    """By type, deleted ones left out, without what they say."""
    await defined(backend, "welcome")
    newest = await defined(backend, "welcome")
    await defined(backend, "gone")
    await backend.templates.delete(ACME, "gone")
    confirmation = await defined(backend, "confirmation")

    listed = [summary_of(each) for each in (confirmation, newest)]
    assert await backend.templates.list(ACME) == listed


async def test_a_deleted_type_is_out_of_use(backend: Backend, clock: StoreClock) -> None:
    """It is found no more, but what was made of it can still be looked up by its number; the newest says since when."""
    first, second = await defined(backend), await defined(backend)
    clock.advance(timedelta(seconds=1))

    assert await backend.templates.delete(ACME, "welcome")

    deleted = replace(second, deleted_at=clock.at())
    assert await backend.templates.find(ACME, "welcome") is None
    assert await backend.templates.find(ACME, "welcome", version=1) == first
    assert await backend.templates.find(ACME, "welcome", version=2) == deleted
    listed = [summary_of(each) for each in (deleted, first)]
    assert await backend.templates.versions(ACME, "welcome") == listed


async def test_only_what_is_in_use_can_be_deleted(backend: Backend) -> None:
    """A second delete, and one of an unknown type, change nothing and say so."""
    await defined(backend)

    answers = [
        await backend.templates.delete(ACME, each) for each in ("welcome", "welcome", "none")
    ]

    assert answers == [True, False, False]


async def test_a_deleted_type_goes_on_counting(backend: Backend) -> None:
    """Two contents never share a version."""
    await defined(backend)
    await backend.templates.delete(ACME, "welcome")

    again = await defined(backend, subject="De novo")

    assert again.version == 2
    assert await backend.templates.find(ACME, "welcome") == again
    assert await backend.templates.delete(ACME, "welcome")


async def test_an_unknown_tenant_has_no_templates(backend: Backend) -> None:
    """Nothing is written for somebody who is not there."""
    answer = await backend.templates.define(NewTemplate(NOBODY, "welcome", "Oi", "<p>Oi</p>"))

    assert answer == TenantUnknown(NOBODY)
    assert await backend.templates.list(NOBODY) == []
