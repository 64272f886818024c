"""Failure groups, the start of dead letters: what fails alike, since when, for whom, and what to do about it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from starlette.responses import Response

from carteiro.api.refusal import Refusal, found
from carteiro.console import moments
from carteiro.console.listing import chips, choice_in, cursor_in, options, text_in
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import FailureFilter, FailureGroup, GroupState, HourOfFailures, value
from carteiro.policy.advice import Advice, advice_on
from carteiro.policy.grouping import GROUP
from carteiro.ports import Failures

_API = "/admin/v1/failures"
_HERE = "dead-letters/groups"
_GROUPS = 25  # of a page: each has a line of its hours
_HOURS = 48
_HOUR = timedelta(hours=1)
_FILTERS = ("state", "provider", "tenant")


@value
class Row:
    """A group in a list: with its failures by hour until now, and the advice."""

    group: FailureGroup
    hours: list[int]
    advice: Advice


class FailurePages(Pages):
    """Failure groups."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures

    @Show("dead-letters", needs=f"GET {_API}")
    async def list(self, visit: Visit) -> Response:
        """Groups, most recently seen first."""
        tenant = visit.within(text_in(visit, "tenant"))
        state = choice_in(visit, "state", GroupState)
        wanted = FailureFilter(tenant, state, text_in(visit, "provider"))
        page = await self._failures.list(wanted, cursor=cursor_in(visit), limit=_GROUPS)
        hours = await self._failures.hours([each.id for each in page.rows], tenant=tenant)
        start = _hour(datetime.now(UTC)) - (_HOURS - 1) * _HOUR
        rows = [
            Row(each, _line(hours.get(each.id, ()), start), advice_on(each)) for each in page.rows
        ]
        return visit.page(
            "failures.html",
            page=page,
            rows=rows,
            states=options(visit, "failures.state", GroupState),
            chips=chips(visit, "failures", _FILTERS),
        )

    @Show(f"{_HERE}/{{group}}", needs=f"GET {_API}/{{id}}")
    async def show(self, visit: Visit) -> Response:
        """One group: its hours, its tenants, its newest messages."""
        tenant = visit.within(text_in(visit, "tenant"))
        report = found(await self._failures.show(_id(visit), tenant=tenant), "failure group")
        last = _hour(report.group.last_seen)
        starts = [last - back * _HOUR for back in reversed(range(_HOURS))]
        return visit.page(
            "failure.html",
            report=report,
            group=report.group,
            advice=advice_on(report.group),
            labels=_labels(visit, starts),
            hours=_line(report.hours, starts[0]),
            tenant=tenant,
        )

    @Change(f"{_HERE}/{{group}}/acknowledge", needs=f"POST {_API}/{{id}}/acknowledge")
    async def acknowledge(self, visit: Visit) -> Response:
        """Mark it as being worked on."""
        return await self._moved(visit, GroupState.ACKNOWLEDGED)

    @Change(f"{_HERE}/{{group}}/resolve", needs=f"POST {_API}/{{id}}/resolve")
    async def resolve(self, visit: Visit) -> Response:
        """Mark its cause as removed."""
        return await self._moved(visit, GroupState.RESOLVED)

    @Change(f"{_HERE}/{{group}}/ignore", needs=f"POST {_API}/{{id}}/ignore")
    async def ignore(self, visit: Visit) -> Response:
        """Mark it as not worth work."""
        return await self._moved(visit, GroupState.IGNORED)

    async def _moved(self, visit: Visit, state: GroupState) -> Response:
        moved = found(await self._failures.move(_id(visit), state), "failure group")
        if moved.state is not state:
            raise Refusal(409, visit.words("failures.is_resolved"))
        return visit.to(f"{_HERE}/{moved.id}", flash=f"failures.moved_{state}")


def _id(visit: Visit) -> str:
    return found(re.fullmatch(GROUP, visit.path["group"]), "failure group")[0]


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _line(hours: Sequence[HourOfFailures], start: datetime) -> list[int]:
    """The failures of each hour from ``start`` on: attempts, or messages that died without one."""
    counts = [0] * _HOURS
    for each in hours:
        at = (each.at - start) // _HOUR
        if 0 <= at < _HOURS:
            counts[at] += max(each.attempts, each.deaths)
    return counts


def _labels(visit: Visit, starts: Sequence[datetime]) -> list[str]:
    """The hour in the zone of the viewer, with the day where it begins."""
    local = [each.astimezone(visit.zone) for each in starts]
    days = [True, *(before.date() != after.date() for before, after in pairwise(local))]
    return [
        f"{moments.day(each, visit.words.language)} {each:%H:%M}" if is_new else f"{each:%H:%M}"
        for each, is_new in zip(local, days, strict=True)
    ]
