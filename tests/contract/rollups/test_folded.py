"""Rollups, folded: every note is added to its minute and its hour exactly once."""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from datetime import timedelta

import pytest

from carteiro.model import FailureFilter
from carteiro.model.figures import Figures
from carteiro.policy import failures, rollups
from carteiro.policy.rollups import Key, Note
from carteiro.ports import Backend
from carteiro.stores.sql import rollups as sql_rollups
from support.builders import ACME, BRASA, a_message, dead, messages, sent
from support.clock import StoreClock
from support.set_ups import Place
from support.steps import accepted, attempted

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ALL = 1000


async def _everything(backend: Backend) -> list[object]:
    rollups = backend.rollups
    return [
        *[await rollups.total("minute", 2 * HOUR, tenant=each) for each in (None, ACME, BRASA)],
        *[await rollups.total("hour", 2 * HOUR, tenant=each) for each in (None, ACME, BRASA)],
        await rollups.split("provider", "hour", 2 * HOUR),
        await rollups.split("tenant", "hour", 2 * HOUR),
        await rollups.split("template", "hour", 2 * HOUR, tenant=ACME),
    ]


async def _lived(backend: Backend, clock: StoreClock) -> None:
    """Something in two hours, of two tenants; a failure that is taken back an hour later."""
    [dead_one] = await accepted(backend.store, a_message(template_type="welcome"))
    await attempted(backend.store, dead())
    await accepted(backend.store, a_message(BRASA, template_type="bill"))
    await attempted(backend.store, sent())
    clock.advance(HOUR)
    await backend.dead_letters.redrive([dead_one], by="ana")
    await attempted(backend.store, sent())


async def test_totals_are_the_same_before_and_after(backend: Backend, clock: StoreClock) -> None:
    """However many notes are folded at a time, and at the end nothing is left to fold."""
    await _lived(backend, clock)
    before = await _everything(backend)

    while await backend.rollups.fold(limit=1, most=ALL):
        assert await _everything(backend) == before
    assert await backend.rollups.fold(limit=10, most=ALL) == 0


async def test_fold_returns_the_number_of_notes(backend: Backend) -> None:
    """One for each list that was stored."""
    await accepted(backend.store, *messages(5))
    await accepted(backend.store, *messages(2))

    folds = [await backend.rollups.fold(limit=limit, most=ALL) for limit in (1, 5, 5)]
    assert folds == [1, 1, 0]


async def test_folds_at_the_same_time_add_each_note_once(place: Place) -> None:
    """Two processes may both think that they lead."""
    async with place.opened() as one, place.opened() as other:
        for _ in range(12):
            await accepted(one.store, a_message())
        folds = [each.rollups.fold(limit=3, most=ALL) for each in (one, other) * 4]
        assert sum(await asyncio.gather(*folds)) == 12

        assert await one.rollups.total("minute", HOUR) == {"accepted": 12}


async def test_note_belongs_to_its_own_minute(backend: Backend, clock: StoreClock) -> None:
    """Also if it is folded much later."""
    await accepted(backend.store, *messages(3))
    clock.advance(2 * MINUTE)
    await accepted(backend.store, a_message())
    await backend.rollups.fold(limit=10, most=ALL)

    lately: Figures = await backend.rollups.total("minute", MINUTE)
    assert lately == {"accepted": 1}
    assert await backend.rollups.total("minute", 2 * MINUTE) == {"accepted": 4}


async def test_failure_is_taken_back_from_its_own_hour(backend: Backend, clock: StoreClock) -> None:
    """Folded before: the hour in which it failed has no failure any more, and this one has none either."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    clock.advance(2 * HOUR)
    await backend.rollups.fold(limit=10, most=ALL)
    await backend.dead_letters.redrive([message], by="ana")
    await backend.rollups.fold(limit=10, most=ALL)

    assert (await backend.rollups.total("hour", 2 * HOUR))["failed"] == 0
    assert (await backend.rollups.total("hour", HOUR))["failed"] == 0


async def test_seen_figures_keep_the_largest(backend: Backend) -> None:
    """Figures of the whole installation, such as the age of the queue."""
    for age in (5, 9, 7):
        await backend.rollups.see(Figures(max_queue_age_ms=age))
        await backend.rollups.fold(limit=1, most=ALL)

    assert await backend.rollups.total("minute", HOUR) == {"max_queue_age_ms": 9}
    assert await backend.rollups.total("minute", HOUR, tenant=ACME) == {}


async def test_figures_are_there_for_the_next_opener(place: Place) -> None:
    """Folded ones and notes."""
    async with place.opened() as first:
        await accepted(first.store, *messages(2))
        await first.rollups.fold(limit=10, most=ALL)
        await accepted(first.store, a_message())

    async with place.opened() as second:
        assert await second.rollups.total("minute", HOUR) == {"accepted": 3}


async def test_large_notes_are_folded_in_several_transactions(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait for each of them: notes of many failures are not added up in one."""
    for _ in range(3):
        await accepted(backend.store, a_message())
    before = await backend.rollups.total("minute", HOUR)
    monkeypatch.setattr(sql_rollups, "_MOST_CHARACTERS", 1)
    taken: list[int] = []
    added = rollups.added

    def counted(notes: Iterable[Note], **more: str) -> dict[Key, Figures]:
        listed = [*notes]
        taken.append(len(listed))
        return added(listed, **more)

    monkeypatch.setattr(rollups, "added", counted)

    assert await backend.rollups.fold(limit=10, most=ALL) == 3
    assert taken == [1, 1, 1]
    assert await backend.rollups.total("minute", HOUR) == before == {"accepted": 3}


async def test_reading_many_notes_does_not_hold_up_others(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes are added up in a thread of their own: a tenant that asks again and again stops nobody."""
    await accepted(backend.store, a_message())
    threads = []
    added, told = rollups.added, failures.told

    def noted_added(notes: Iterable[Note], **more: str) -> dict[Key, Figures]:
        threads.append(threading.current_thread())
        return added(notes, **more)

    def noted_told(notes: Iterable[Note]) -> Iterator[failures.Told]:
        threads.append(threading.current_thread())
        return told(notes)

    monkeypatch.setattr(rollups, "added", noted_added)
    monkeypatch.setattr(failures, "told", noted_told)
    await backend.rollups.total("minute", HOUR, tenant=ACME)
    await backend.failures.list()
    await backend.failures.list(FailureFilter(tenant=ACME))

    assert len(threads) == 4
    assert threading.main_thread() not in threads
