"""Reports, bounded: one of each process, for its stay, also if the clock steps back."""

from datetime import timedelta

from carteiro.model.reports import Report
from carteiro.ports import Backend
from support.clock import StoreClock

DAY = timedelta(days=1)
STAY = timedelta(minutes=3)


async def test_ended_reports_are_deleted_with_the_next_one(
    backend: Backend, clock: StoreClock
) -> None:
    """Set back to their time, they are not found again."""
    for number in range(20):
        await backend.reports.put(Report(f"short-lived-{number}", {}), stay=STAY)
    clock.advance(STAY)
    await backend.reports.put(Report("next", {}), stay=10 * STAY)
    clock.back(STAY / 2)

    assert [each.process for each in await backend.reports.show()] == ["next"]


async def test_clock_that_steps_back_makes_no_report_last(
    backend: Backend, clock: StoreClock
) -> None:
    """Its end is further ahead than any stay."""
    await backend.reports.put(Report("early", {}), stay=DAY)
    clock.back(DAY)
    late = await backend.reports.show()
    await backend.reports.put(Report("next", {}), stay=STAY)
    clock.advance(DAY)

    assert late == []
    assert await backend.reports.show() == []
