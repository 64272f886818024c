"""Regular maintenance."""

from datetime import timedelta

from carteiro.model import MessageId
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.quota import KEY_LIFE_MS
from carteiro.ports.upkeep import Pruned
from support.model.tables import Job, Lead, Tables


class ModelUpkeep:
    """The `Upkeep` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages that waited beyond their time; return their number."""
        now = self._tables.now()
        over = [job for job in self._tables.jobs.values() if job.expires_at <= now]
        expired = 0
        for job in sorted(over, key=lambda job: (job.expires_at, job.id)):
            if expired < limit:
                expired += self._expire_one(job, now)
        return expired

    def _expire_one(self, job: Job, now: int) -> bool:
        row = self._tables.rows[job.id]
        change = lifecycle.expire(row.entry, leased=job.is_leased(now), now=now)
        if change is not None:
            self._tables.apply(row, change, now)
        return change is not None

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        after: MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Look at the next ``limit`` messages and delete what is older than its retention (None keeps it)."""
        now = self._tables.now()
        keys = self._prune_keys(limit, now)
        if bodies is None and histories is None:
            return Pruned(0, 0, None, keys, has_more=keys == limit)
        rest = sorted(each for each in self._tables.rows if after is None or each > after)
        page = rest[:limit]
        old_histories = [each for each in page if self._is_past(each, histories, now)]
        for each in old_histories:
            del self._tables.rows[each]
            self._tables.contents.pop(each, None)
        kept = [each for each in page if each in self._tables.contents]
        old_bodies = [each for each in kept if self._is_past(each, bodies, now)]
        for each in old_bodies:
            del self._tables.contents[each]
        last = page[-1] if len(page) == limit and page else None
        return Pruned(len(old_bodies), len(old_histories), last, keys, has_more=keys == limit)

    def _prune_keys(self, limit: int, now: int) -> int:
        """Delete expired idempotency keys, and counts of past windows."""
        tables = self._tables
        old = [key for key, each in tables.requests.items() if each.created_at + KEY_LIFE_MS <= now]
        for key in sorted(old, key=lambda key: tables.requests[key].created_at)[:limit]:
            del tables.requests[key]
        for tenant, windows in list(tables.api_counts.items()):
            tables.api_counts[tenant] = [each for each in windows if each[1] + each[0] > now]
        return min(len(old), limit)

    def _is_past(self, message: MessageId, retention: timedelta | None, now: int) -> bool:
        """True if the message finished longer ago than that, and has no dead letter."""
        finished_at = self._tables.rows[message].entry.finished_at
        if retention is None or finished_at is None or message in self._tables.dead_letters:
            return False
        return finished_at <= now - retention // MILLISECOND

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another has it."""
        now = self._tables.now()
        until = now + term // MILLISECOND
        lead = self._tables.leads.get(name)
        if lead is not None and lead.holder != holder and now < lead.until:
            is_ahead = (
                lead.seen_at - now > lead.until - lead.seen_at
            )  # of a clock that was set back
            if not is_ahead:
                return False
        self._tables.leads[name] = Lead(holder, until, now)
        return True
