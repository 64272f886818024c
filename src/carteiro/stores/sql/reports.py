"""Reports of processes: a row each."""

from datetime import timedelta
from typing import Any

import orjson

from carteiro.model.reports import QueueReport, Report
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.ports.reports import MOST_REPORTS
from carteiro.stores.columns import in_ms, maybe_moment, moment
from carteiro.stores.sql.session import Database, Session

_LONGEST_STAY = timedelta(hours=1)  # a later end comes from a clock that stepped back


class SqlReports:
    """See `carteiro.ports.reports.Reports` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, report: Report, *, stay: timedelta) -> None:
        """Replace the report of this process; it is found for its ``stay``."""
        now = await self._db.now()
        until = now + min(stay, _LONGEST_STAY) // MILLISECOND

        async def replace(session: Session) -> None:
            await session.run("report_delete", process="", now=now, latest=_latest(now))
            await session.run("report_put", process=report.process, until=until, said=_said(report))

        await self._db.write(replace, durable=False)

    async def withdraw(self, process: str) -> None:
        """Delete the report of a process: it has nothing to say."""
        now = await self._db.now()
        await self._db.run("report_delete", process=process, now=now, latest=_latest(now))

    async def show(self) -> list[Report]:
        """The live reports, by process."""
        now = await self._db.now()
        rows = await self._db.fetch(
            "reports_list", now=now, latest=_latest(now), limit=MOST_REPORTS
        )
        return [_report(*row) for row in rows]


def _latest(now: int) -> int:
    return now + _LONGEST_STAY // MILLISECOND


def _said(report: Report) -> str:
    queue = report.queue
    return orjson.dumps(
        {
            "circuits": {name: in_ms(since) for name, since in report.circuits.items()},
            "opened": {name: in_ms(at) for name, at in report.opened.items()},
            "queue": queue
            and [
                *(queue.used_bytes, queue.max_bytes, queue.rejected, queue.out_of_memory),
                queue.away_since and in_ms(queue.away_since),
            ],
        }
    ).decode()


def _report(process: str, said: str) -> Report:
    told: dict[str, Any] = orjson.loads(said)
    circuits, opened = (
        {name: moment(at) for name, at in told[part].items()} for part in ("circuits", "opened")
    )
    if told["queue"] is None:
        return Report(process, circuits, None, opened)
    *counts, away_since = told["queue"]
    told_queue = QueueReport(*[*counts, maybe_moment(away_since)])
    return Report(process, circuits, told_queue, opened)
