"""Suppressions, faithful: found by any spelling, by their own tenant alone, until they expire."""

from datetime import timedelta

import pytest

from carteiro.model import NewSuppression, Suppression, SuppressionReason, TenantId, TenantUnknown
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import StoreClock

ANA = "Ana.Silva@example.com"
FOR_GOOD = (SuppressionReason.HARD_BOUNCE, SuppressionReason.COMPLAINT, SuppressionReason.MANUAL)


async def _listed(backend: Backend, email: str | None = None) -> list[Suppression]:
    return (await backend.suppressions.list(ACME, email=email)).rows


@pytest.mark.parametrize("reason", FOR_GOOD)
async def test_suppressed_address_is_found_by_any_spelling(
    backend: Backend, clock: StoreClock, reason: SuppressionReason
) -> None:
    """In any case; years later, too."""
    await backend.suppressions.put([NewSuppression(ANA, reason)], tenant=ACME)
    clock.advance(timedelta(days=3650))

    asked = ["ana.silva@EXAMPLE.com", "bia@example.com", ANA]

    assert await backend.suppressions.find(asked, tenant=ACME) == [asked[0], ANA]


async def test_suppression_belongs_to_its_tenant(backend: Backend) -> None:
    """Another tenant's list neither finds nor removes it."""
    await backend.suppressions.put([NewSuppression(ANA, SuppressionReason.MANUAL)], tenant=ACME)

    assert await backend.suppressions.find([ANA], tenant=BRASA) == []
    assert (await backend.suppressions.list(BRASA)).rows == []
    assert await backend.suppressions.remove([ANA], tenant=BRASA) == 0
    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]


async def test_unknown_tenant_has_no_list(backend: Backend) -> None:
    """Nothing is stored for it."""
    nobody = TenantId("nobody")
    put = await backend.suppressions.put(
        [NewSuppression(ANA, SuppressionReason.MANUAL)], tenant=nobody
    )

    assert put == TenantUnknown(nobody)
    assert (await backend.suppressions.list(nobody)).rows == []


async def test_suppression_is_read_as_it_was_put(backend: Backend, clock: StoreClock) -> None:
    """Each reason separately, with the domain in lower case."""
    at, until = clock.at(-timedelta(days=1)), clock.at(timedelta(days=7))
    new = [
        NewSuppression("Ana@EXAMPLE.com", SuppressionReason.COMPLAINT, at),
        NewSuppression("Ana@example.com", SuppressionReason.MANUAL, None, until),
    ]

    written = await backend.suppressions.put(new, tenant=ACME)

    assert written == 2
    assert await _listed(backend) == [
        Suppression("Ana@example.com", SuppressionReason.MANUAL, clock.at(), until),
        Suppression("Ana@example.com", SuppressionReason.COMPLAINT, at, None),
    ]
    assert await _listed(backend, "ana@example.com") == await _listed(backend)
    assert await _listed(backend, "bia@example.com") == []


async def test_manual_suppression_ends_at_its_time(backend: Backend, clock: StoreClock) -> None:
    """The last one counts."""
    until = clock.at(timedelta(days=7))
    manual = SuppressionReason.MANUAL
    await backend.suppressions.put([NewSuppression(ANA, manual)], tenant=ACME)
    await backend.suppressions.put([NewSuppression(ANA, manual, None, until)], tenant=ACME)

    before = await backend.suppressions.find([ANA], tenant=ACME)
    clock.advance(timedelta(days=7))

    assert before == [ANA]
    assert await backend.suppressions.find([ANA], tenant=ACME) == []
    assert await _listed(backend) == []


async def test_removed_address_can_be_sent_to(backend: Backend) -> None:
    """With any reasons; others stay."""
    new = [NewSuppression(ANA, reason) for reason in FOR_GOOD]
    new.append(NewSuppression("bia@example.com", SuppressionReason.MANUAL))
    await backend.suppressions.put(new, tenant=ACME)

    removed = await backend.suppressions.remove([ANA.upper()], tenant=ACME)

    assert removed == len(FOR_GOOD)
    found = await backend.suppressions.find([ANA, "bia@example.com"], tenant=ACME)
    assert found == ["bia@example.com"]


async def test_second_bounce_adds_nothing_to_the_first(backend: Backend, clock: StoreClock) -> None:
    """It counts from the first one on, in any order."""
    first, second = clock.at(-timedelta(days=2)), clock.at(-timedelta(days=1))
    for at in (second, first, second):
        new = NewSuppression(ANA, SuppressionReason.HARD_BOUNCE, at)
        await backend.suppressions.put([new], tenant=ACME)

    assert await _listed(backend) == [
        Suppression("Ana.Silva@example.com", SuppressionReason.HARD_BOUNCE, first, None)
    ]


async def test_ended_suppression_is_pruned(backend: Backend, clock: StoreClock) -> None:
    """Others stay."""
    manual = SuppressionReason.MANUAL
    short = NewSuppression("bia@example.com", manual, None, clock.at(timedelta(days=1)))
    await backend.suppressions.put([short, NewSuppression(ANA, manual)], tenant=ACME)
    clock.advance(timedelta(days=1))

    await backend.upkeep.prune(bodies=None, histories=None)

    assert await backend.suppressions.remove(["bia@example.com"], tenant=ACME) == 0
    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]
