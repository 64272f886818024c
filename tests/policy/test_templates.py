"""Storage limits of templates, and eviction."""

import pytest

from carteiro.model import NewTemplate, StorageLimit, TemplateKept, TemplateLimits
from carteiro.policy.templates import Forgotten, forgotten_for
from support.builders import ACME

LIMITS = TemplateLimits(types=5, versions=10, bytes=100)
FULL, FULL_OF_BYTES = StorageLimit("templates", 5), StorageLimit("bytes of templates", 100)


def new(type: str = "new", size: int = 10) -> NewTemplate:
    """A template of this many bytes."""
    return NewTemplate(ACME, type, "x", text="x" * (size - 1))


def kept(type: str, size: int = 10, newest: int = 10, *, is_deleted: bool = False) -> TemplateKept:
    """A type that the tenant has."""
    return TemplateKept(type, is_deleted, size, newest)


def gone(type: str, size: int = 10) -> TemplateKept:
    """A type that was deleted."""
    return kept(type, size, size, is_deleted=True)


@pytest.mark.parametrize(
    ("template", "known", "expected"),
    [
        (new(), [], Forgotten([], [])),
        (new(), [kept(each) for each in "abcd"], Forgotten([], [])),
        (new(), [kept(each) for each in "abcde"], FULL),
        (new(), [gone("a"), gone("b"), *map(kept, "cde")], Forgotten(["a"], [])),
        (new(), [gone("a"), gone("b"), *map(kept, "cdef")], Forgotten(["a", "b"], [])),
        (new(), [gone("a"), *map(kept, "bcdefg")], FULL),
        (new("a"), [kept(each) for each in "abcde"], Forgotten([], [])),
        (new("a"), [gone("a"), *map(kept, "bcde")], Forgotten([], [])),
    ],
)
def test_deleted_type_makes_room_for_a_new_one(
    template: NewTemplate, known: list[TemplateKept], expected: Forgotten | StorageLimit
) -> None:
    """Those deleted first go first; a type in use never goes."""
    assert forgotten_for(template, known, LIMITS) == expected


@pytest.mark.parametrize(
    ("template", "known", "expected"),
    [
        (new(size=100), [], Forgotten([], [])),
        (new(size=101), [], FULL_OF_BYTES),
        (new(size=60), [gone("a", 50), gone("b", 40)], Forgotten(["a"], [])),
        (new("a", size=60), [gone("b", 30), kept("a", 50, 10)], Forgotten(["b"], ["a"])),
        (new(size=60), [kept("a", 50, 10), kept("b", 45, 10)], Forgotten([], ["a", "b"])),
        (new(size=60), [kept("a", 20, 10), kept("b", 50, 10)], Forgotten([], ["b"])),
        (new(size=81), [kept("a", 50, 10), kept("b", 45, 10)], FULL_OF_BYTES),
        (new("a", size=100), [gone("a", 90)], Forgotten([], ["a"])),
    ],
)
def test_older_versions_make_room_for_bytes(
    template: NewTemplate, known: list[TemplateKept], expected: Forgotten | StorageLimit
) -> None:
    """Deleted types first, then older versions of the type itself, then those of the largest type."""
    assert forgotten_for(template, known, LIMITS) == expected
