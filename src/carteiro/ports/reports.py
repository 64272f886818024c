"""Reports of processes, for alerts."""

from datetime import timedelta
from typing import Protocol

from carteiro.model.reports import Report

MOST_REPORTS = 1000  # processes


class Reports(Protocol):
    """The last report of each process. Data lost in a crash is reported anew.

    Promises, one module each in ``tests/contract/reports``:

    last     The last report of a process is found, by all processes, until its stay ends or it is withdrawn.
    bounded  A process has one report. Those whose stay is over are deleted with the next report; a clock that steps
             back makes none last longer.
    """

    async def put(self, report: Report, *, stay: timedelta) -> None:
        """Replace the report of this process; it is found for its ``stay``."""

    async def withdraw(self, process: str) -> None:
        """Delete the report of a process: it has nothing to say."""

    async def show(self) -> list[Report]:
        """The live reports, by process, at most `MOST_REPORTS`."""
