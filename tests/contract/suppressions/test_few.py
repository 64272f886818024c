"""Suppressions, few: a put with a limit leaves a tenant with no more records than that."""

import asyncio
from collections import Counter

from carteiro.model import NewSuppression, StorageLimit, SuppressionReason
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.set_ups import Place


def _manual(*addresses: str) -> list[NewSuppression]:
    return [NewSuppression(each, SuppressionReason.MANUAL) for each in addresses]


def _people(first: int, last: int) -> list[str]:
    return [f"person{number}@example.com" for number in range(first, last)]


async def test_all_are_put_or_none(backend: Backend) -> None:
    """Other tenants have lists of their own, and one record more is one too many."""
    await backend.suppressions.put(_manual(*_people(0, 8)), tenant=BRASA, most=10)
    await backend.suppressions.put(_manual(*_people(0, 8)), tenant=ACME, most=10)

    refused = await backend.suppressions.put(_manual(*_people(8, 11)), tenant=ACME, most=10)
    fits = await backend.suppressions.put(_manual(*_people(8, 10)), tenant=ACME, most=10)

    assert refused == StorageLimit("suppressions", 10)
    assert fits == 2
    assert await backend.suppressions.find(["person10@example.com"], tenant=ACME) == []


async def test_full_list_accepts_known_addresses(backend: Backend) -> None:
    """Putting the same again adds nothing; removing some makes room."""
    await backend.suppressions.put(_manual(*_people(0, 5)), tenant=ACME, most=5)

    again = await backend.suppressions.put(_manual("person0@example.com"), tenant=ACME, most=5)
    more = await backend.suppressions.put(_manual("new@example.com"), tenant=ACME, most=5)
    await backend.suppressions.remove(["person0@example.com"], tenant=ACME)
    after = await backend.suppressions.put(_manual("new@example.com"), tenant=ACME, most=5)

    assert (again, more, after) == (1, StorageLimit("suppressions", 5), 1)


async def test_put_without_a_limit_is_never_refused(backend: Backend) -> None:
    """Reports of providers are always recorded."""
    await backend.suppressions.put(_manual(*_people(0, 5)), tenant=ACME, most=5)
    bounced = NewSuppression("bounced@example.com", SuppressionReason.HARD_BOUNCE)

    count = await backend.suppressions.put([bounced], tenant=ACME)

    assert count == 1
    assert await backend.suppressions.find(["bounced@example.com"], tenant=ACME) != []


async def test_two_openers_keep_no_more_than_one(place: Place) -> None:
    """Nothing slips in between the count and the records."""
    async with place.opened() as first, place.opened() as second:
        answers = await asyncio.gather(
            *(
                each.suppressions.put(_manual(*_people(3 * n, 3 * n + 3)), tenant=ACME, most=10)
                for n, each in enumerate([first, second] * 3)
            )
        )

        told = Counter(
            str(each) if isinstance(each, int) else type(each).__name__ for each in answers
        )
        assert told == {"3": 3, "StorageLimit": 3}
        page = await first.suppressions.list(ACME)
        assert len(page.rows) == 9
