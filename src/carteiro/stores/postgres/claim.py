"""Claims: one call of the SQL function for the jobs, and another for their messages if they are many."""

from collections.abc import Collection, Mapping
from datetime import timedelta

import orjson

from carteiro import model
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.stores.columns import recipient_of
from carteiro.stores.heeding import with_suppressed
from carteiro.stores.postgres.database import Database

_DELIVERIES = {each.value: each for each in model.Delivery}
_NUMBER, _IS_FINISHED, _SUPPRESSES, _TENANT, _RECIPIENT = 1, 2, 3, 6, 17  # columns of a message
_CLOCK_JITTER_MS = 1000  # a clock that is behind by more than this was set back


class Claims:
    """Leases jobs."""

    def __init__(self, db: Database, fairness: model.Fairness) -> None:
        self._db = db
        self._fairness = fairness

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> model.Claimed:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns."""
        if not kinds:
            return model.Claimed([], None)
        told = await self._db.first(
            "claim",
            sorted(set(kinds)),
            max(0, limit),
            ahead,
            claim_id,
            lease // MILLISECOND,
            self._fairness.max_jobs_per_tenant_batch,
            self._fairness.enable_round_robin,
            READIED_PER_TURN,
            SUSPECT_CLAIMS,
            MOST_DRAWS,
            LONGEST_HOLD_MS,
            _CLOCK_JITTER_MS,
            self._db.fixed_now,
        )
        now, idle_ms, numbers, claims, served, preset_texts, messages = told
        idle_for = None if idle_ms is None else idle_ms * MILLISECOND
        if not served:
            return model.Claimed([], idle_for)
        if messages is None:  # many, or none is left
            rows = await self._db.fetch("claimed", numbers, list(dict.fromkeys(served)))
        else:
            rows = [[*row.values()] for row in orjson.loads(messages)]
        if [row for row in rows if row[_IS_FINISHED]] or len(rows) <= numbers.count(","):
            rows = [row for row in rows if not row[_IS_FINISHED]]
            # They ended during the claim, or are gone: their jobs are dropped, never sent.
            wanted = {row[_NUMBER] for row in rows}
            stale = [each for each in map(int, numbers[1:-1].split(",")) if each not in wanted]
            await self._db.fetch("drop_orphans", stale, claim_id)
        recipients = await self._recipients({row[_RECIPIENT] for row in rows} - {None})
        presets = orjson.loads(preset_texts) if preset_texts else {}
        jobs = [
            model.LeasedJob(
                model.Lease(row[4], claim_id),
                *(row[5], row[6], claims[row[0] - 1] if claims else 1, row[7], row[6], row[8]),
                *(_DELIVERIES[row[9]], row[10], row[11], row[12], row[13], row[14]),
                (row[15] - now) * MILLISECOND,
                *(row[16], row[17], recipients.get(row[17]) if recipients else None),
                row[18] or (presets.get(row[6]) if presets else None),
                row[19],
            )
            for row in rows
        ]
        suppressing = {row[_TENANT] for row in rows if row[_SUPPRESSES]}
        return model.Claimed(await with_suppressed(self._db, jobs, suppressing, now), idle_for)

    async def _recipients(self, ids: set[str]) -> Mapping[str, model.Recipient]:
        rows = await self._db.fetch("claim_recipients", ids=sorted(ids)) if ids else []
        return {recipient.id: recipient for recipient in map(recipient_of, rows)}
