"""Templates, versioned: the content of a version never changes; the newest one is found unless another is named."""

from dataclasses import replace
from datetime import timedelta

from carteiro.model import NewTemplate, Template, TenantId, TenantUnknown
from carteiro.ports import Backend
from support.builders import ACME
from support.clock import StoreClock
from support.templates import defined, summary_of

NOBODY = TenantId("nobody")


async def test_template_is_kept_as_it_was_written(backend: Backend, clock: StoreClock) -> None:
    """Every field, numbered and dated."""
    said = ("Olá {{ nome }}", "<p>Olá</p>", "Olá", "transactional")
    new = NewTemplate(ACME, "welcome", *said, one_click_unsubscribe=True, automatic_redrive=False)

    written = await backend.templates.define(new)

    assert written == Template(
        *(ACME, "welcome", 1, *said),
        one_click_unsubscribe=True,
        automatic_redrive=False,
        created_at=clock.at(),
    )
    assert await backend.templates.find(ACME, "welcome") == written


async def test_each_change_is_a_new_version(backend: Backend, clock: StoreClock) -> None:
    """The newest is found, the older ones by their number, each unchanged."""
    first = await defined(backend)
    clock.advance(timedelta(seconds=1))
    second = await defined(backend, subject="Bom dia", html=None, text="Bom dia")

    assert (first.version, second.version) == (1, 2)
    assert await backend.templates.find(ACME, "welcome") == second
    assert await backend.templates.find(ACME, "welcome", version=1) == first
    assert await backend.templates.find(ACME, "welcome", version=2) == second
    listed = [summary_of(each) for each in (second, first)]
    assert await backend.templates.versions(ACME, "welcome") == listed


async def test_missing_template_is_not_found(backend: Backend) -> None:
    """An unknown type has no version, a known one only its own."""
    await defined(backend)
    templates = backend.templates

    assert await templates.find(ACME, "other") is None
    assert await templates.find(ACME, "other", version=1) is None
    assert [await templates.find(ACME, "welcome", version=each) for each in (-1, 0, 2)] == [
        None
    ] * 3
    assert await templates.versions(ACME, "other") == []


async def test_newest_of_each_type_is_listed(backend: Backend) -> None:
    """By type, without deleted ones, and without content."""
    await defined(backend, "welcome")
    newest = await defined(backend, "welcome")
    await defined(backend, "gone")
    await backend.templates.delete(ACME, "gone")
    confirmation = await defined(backend, "confirmation")

    listed = [summary_of(each) for each in (confirmation, newest)]
    assert await backend.templates.list(ACME) == listed


async def test_deleted_type_cannot_be_used(backend: Backend, clock: StoreClock) -> None:
    """It is not found, but its versions can still be read by number; the newest has the time of the deletion."""
    first, second = await defined(backend), await defined(backend)
    clock.advance(timedelta(seconds=1))

    assert await backend.templates.delete(ACME, "welcome")

    deleted = replace(second, deleted_at=clock.at())
    assert await backend.templates.find(ACME, "welcome") is None
    assert await backend.templates.find(ACME, "welcome", version=1) == first
    assert await backend.templates.find(ACME, "welcome", version=2) == deleted
    listed = [summary_of(each) for each in (deleted, first)]
    assert await backend.templates.versions(ACME, "welcome") == listed


async def test_only_a_type_in_use_can_be_deleted(backend: Backend) -> None:
    """A second delete, and one of an unknown type, change nothing and say so."""
    await defined(backend)

    answers = [
        await backend.templates.delete(ACME, each) for each in ("welcome", "welcome", "none")
    ]

    assert answers == [True, False, False]


async def test_deleted_type_goes_on_counting(backend: Backend) -> None:
    """Two contents never share a version."""
    await defined(backend)
    await backend.templates.delete(ACME, "welcome")

    again = await defined(backend, subject="De novo")

    assert again.version == 2
    assert await backend.templates.find(ACME, "welcome") == again
    assert await backend.templates.delete(ACME, "welcome")


async def test_unknown_tenant_has_no_templates(backend: Backend) -> None:
    """Nothing is written for it."""
    answer = await backend.templates.define(NewTemplate(NOBODY, "welcome", "Oi", "<p>Oi</p>"))

    assert answer == TenantUnknown(NOBODY)
    assert await backend.templates.list(NOBODY) == []
