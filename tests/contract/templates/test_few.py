"""Templates, few: a tenant keeps no more types, versions and bytes than its limits say."""

import asyncio
from collections import Counter
from datetime import timedelta

from carteiro.model import (
    MOST_TEMPLATE_VERSIONS,
    NewTemplate,
    StorageLimit,
    Template,
    TemplateLimits,
)
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.set_ups import Place
from support.templates import defined

MOST = 30
LIMITS = TemplateLimits(types=MOST)


async def _filled(backend: Backend, *, leaving: int = 0) -> None:
    """As many templates as allowed, or some fewer."""
    await asyncio.gather(
        *(defined(backend, f"type-{number:04}") for number in range(MOST - leaving))
    )


async def _asked(backend: Backend, *types: str) -> list[type]:
    """Define templates at once; the answers."""
    new = [NewTemplate(ACME, each, "Oi", text="Oi") for each in types]
    answers = await asyncio.gather(*(backend.templates.define(each, limits=LIMITS) for each in new))
    return [type(answer) for answer in answers]


async def test_template_over_the_limit_is_refused(backend: Backend) -> None:
    """Existing ones can be changed all the same, and others have templates of their own."""
    await _filled(backend)

    answers = await _asked(backend, "one-more")

    assert answers == [StorageLimit]
    assert await backend.templates.find(ACME, "one-more") is None
    assert len(await backend.templates.list(ACME)) == MOST
    assert (await defined(backend, "type-0000")).version == 2
    assert (await defined(backend, "one-more", tenant=BRASA)).version == 1


async def test_first_deleted_makes_room(backend: Backend, clock: StoreClock) -> None:
    """It is deleted with all its versions; later ones are kept until their turn."""
    await _filled(backend)
    await defined(backend, "type-0020")
    for type in ("type-0020", "type-0010"):
        clock.advance(timedelta(seconds=1))
        await backend.templates.delete(ACME, type)

    answers = await _asked(backend, "one-more")

    assert answers == [Template]
    assert await backend.templates.versions(ACME, "type-0020") == []
    assert await backend.templates.find(ACME, "type-0010", version=1) is not None
    assert await _asked(backend, "another") == [Template]
    assert await _asked(backend, "type-0020") == [StorageLimit]


async def test_newest_versions_are_kept(backend: Backend) -> None:
    """Older ones are deleted, and their numbers are not used again; other types keep theirs."""
    other = await defined(backend, "other")
    for _ in range(MOST_TEMPLATE_VERSIONS + 2):
        newest = await defined(backend)

    versions = await backend.templates.versions(ACME, "welcome")

    assert newest.version == MOST_TEMPLATE_VERSIONS + 2
    assert [each.version for each in versions] == list(range(newest.version, 2, -1))
    assert await backend.templates.find(ACME, "welcome", version=2) is None
    assert await backend.templates.find(ACME, "welcome", version=3) is not None
    assert await backend.templates.find(ACME, "welcome") == newest
    assert await backend.templates.find(ACME, "other") == other


async def test_two_openers_keep_no_more_than_one(place: Place) -> None:
    """Processes that share a store share the limits: nothing slips in between the count and the template."""
    async with place.opened() as first, place.opened() as second:
        await _filled(first, leaving=2)

        answers = await asyncio.gather(_asked(first, "a", "b", "c"), _asked(second, "d", "e", "f"))

        told = Counter(each for some in answers for each in some)
        assert told == {Template: 2, StorageLimit: 4}
        assert len(await first.templates.list(ACME)) == MOST


async def test_two_openers_number_one_after_the_other(place: Place) -> None:
    """With concurrent writes of one type each version has its own number and the newest are kept."""
    async with place.opened() as first, place.opened() as second:
        written = await asyncio.gather(
            *(defined(each) for each in (first, second) for _ in range(MOST_TEMPLATE_VERSIONS))
        )

        versions = await first.templates.versions(ACME, "welcome")

    newest = 2 * MOST_TEMPLATE_VERSIONS
    assert sorted(each.version for each in written) == list(range(1, newest + 1))
    kept = range(newest, MOST_TEMPLATE_VERSIONS, -1)
    assert [each.version for each in versions] == list(kept)


def _of(type: str, size: int) -> NewTemplate:
    """A template of this many bytes; two to a character, which must not make it half as large."""
    return NewTemplate(ACME, type, "ç", html="ç" * (size // 4), text="ç" * (size // 4 - 1))


async def _in_use(backend: Backend) -> list[str]:
    return [each.type for each in await backend.templates.list(ACME)]


async def test_types_in_use_keep_the_byte_limit(backend: Backend) -> None:
    """Templates of others do not count; a refused one leaves nothing."""
    limits = TemplateLimits(bytes=1000)
    first = await backend.templates.define(_of("first", 600), limits=limits)
    others = NewTemplate(BRASA, "first", "x", text="x" * 900)
    theirs = await backend.templates.define(others, limits=limits)

    refused = await backend.templates.define(_of("second", 404), limits=limits)
    fits = await backend.templates.define(_of("second", 400), limits=limits)

    assert [type(each) for each in (first, theirs, fits)] == [Template] * 3
    assert refused == StorageLimit("bytes of templates", 1000)
    assert await _in_use(backend) == ["first", "second"]


async def test_older_versions_and_deleted_types_make_room_for_bytes(backend: Backend) -> None:
    """The newest version of each type in use always stays; numbers go on."""
    limits = TemplateLimits(bytes=1000)
    for each in (_of("gone", 200), _of("old", 200), _of("old", 200), _of("kept", 200)):
        assert isinstance(await backend.templates.define(each, limits=limits), Template)
    await backend.templates.delete(ACME, "gone")

    for_gone = await backend.templates.define(_of("new", 400), limits=limits)
    for_old = await backend.templates.define(_of("kept", 200), limits=limits)

    assert isinstance(for_gone, Template)
    assert await backend.templates.versions(ACME, "gone") == []
    assert isinstance(for_old, Template)
    assert for_old.version == 2
    assert await _in_use(backend) == ["kept", "new", "old"]
    assert [each.version for each in await backend.templates.versions(ACME, "kept")] == [2]
    assert [each.version for each in await backend.templates.versions(ACME, "old")] == [2, 1]


async def test_two_openers_keep_no_more_bytes_than_one(place: Place) -> None:
    """Nothing slips in between the sum and the template."""
    limits = TemplateLimits(bytes=1000)
    async with place.opened() as first, place.opened() as second:
        answers = await asyncio.gather(
            *(
                each.templates.define(_of(f"type-{number}", 300), limits=limits)
                for number, each in enumerate([first, second] * 3)
            )
        )

        told = Counter(type(each) for each in answers)
        assert told == {Template: 3, StorageLimit: 3}
        assert len(await _in_use(first)) == 3
