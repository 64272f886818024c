"""Cache of lessons from history: read in the background, so that no verdict waits for it."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from carteiro.model import Failure, LeasedJob, TenantId
from carteiro.observability import log
from carteiro.policy.grouping import group_of
from carteiro.policy.lessons import LEAST, Lesson, is_spared, lesson_of
from carteiro.ports.failures import Failures

# Of the tenants and groups with the most retries; others keep the usual policy.
_MOST_HISTORIES: Final = 2000


class Lessons:
    """The lessons of all tenants, as of the last `refresh`; at the start there are none."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._known: Mapping[tuple[TenantId, str], Lesson] = {}

    def about(self, job: LeasedJob, failure: Failure, *, provider: str) -> Lesson | None:
        """The lesson of the tenant's own history about a failure; None: there is none, or it is spared."""
        known = self._known
        if not known or is_spared(job.lease.job):
            return None
        return known.get((job.tenant, group_of(provider, failure)))

    async def refresh(self) -> None:
        """Read the histories, and draw the lessons."""
        histories = await self._failures.tenant_histories(least=LEAST, limit=_MOST_HISTORIES)

        def lessons() -> Mapping[tuple[TenantId, str], Lesson]:
            found = {(tenant, group): lesson_of(group, each) for group, tenant, each in histories}
            return {place: lesson for place, lesson in found.items() if lesson is not None}

        self._known = await asyncio.to_thread(lessons)

    async def keep(self, *, every: timedelta = timedelta(minutes=1)) -> None:
        """Refresh until cancelled; while that fails, the last lessons hold."""
        while True:
            try:
                await self.refresh()
            except Exception as error:  # noqa: BLE001 - the next round may succeed, and a loop must not end unnoticed
                log.upkeep_failed("lessons", error)
            await asyncio.sleep(every.total_seconds())
