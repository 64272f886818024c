"""Reports, last: the last report of a process is found by all, until its stay ends or it is withdrawn."""

from datetime import UTC, datetime, timedelta

from carteiro.model.reports import QueueReport, Report
from carteiro.ports import Backend
from support.clock import StoreClock
from support.set_ups import Place

STAY = timedelta(minutes=3)
NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
QUEUE = QueueReport(80, 100, 1, 2, NOON)


async def test_every_process_finds_the_last_report(place: Place) -> None:
    """All its fields, and only the newest of each process."""
    async with place.opened() as one, place.opened() as other:
        await one.reports.put(Report("b", {}, QueueReport()), stay=STAY)
        await one.reports.put(Report("b", {"smtp": NOON}, QUEUE), stay=STAY)
        told = Report("a", {"ses": NOON, "smtp": NOON}, None, {"ses": NOON + STAY})
        await other.reports.put(told, stay=STAY)

        assert await one.reports.show() == [
            told,
            Report("b", {"smtp": NOON}, QUEUE),
        ]


async def test_report_ends_with_its_stay(backend: Backend, clock: StoreClock) -> None:
    """A process that is killed does not report for ever; one that lives renews it."""
    await backend.reports.put(Report("dead", {"smtp": NOON}), stay=STAY)
    await backend.reports.put(Report("alive", {"smtp": NOON}), stay=STAY)
    clock.advance(STAY / 2)
    await backend.reports.put(Report("alive", {"smtp": NOON}), stay=STAY)
    clock.advance(STAY / 2)

    assert [each.process for each in await backend.reports.show()] == ["alive"]


async def test_withdrawn_report_is_gone(backend: Backend) -> None:
    """Those of others stay; a process that never reported has nothing to withdraw."""
    for process in ("one", "other"):
        await backend.reports.put(Report(process, {}), stay=STAY)
    await backend.reports.withdraw("one")
    await backend.reports.withdraw("nobody")

    assert await backend.reports.show() == [Report("other", {})]
