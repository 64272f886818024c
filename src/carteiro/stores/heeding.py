"""Finds the suppressed addresses of claimed e-mails, for every SQL store.

A claim loads for each tenant whether it has any suppressions. If it has some, the addresses of the whole claim are
looked up in one statement. If it has none, nothing is read.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from carteiro.model import EMAIL, LeasedJob
from carteiro.policy.suppression import addresses_of, key_of
from carteiro.stores.sql.session import Session


async def with_suppressed(
    session: Session, jobs: list[LeasedJob], tenants: Collection[str], now: int
) -> list[LeasedJob]:
    """Return the jobs with their suppressed addresses; ``tenants`` are those that have suppressions."""
    if not tenants:
        return jobs
    asked = {
        job.lease.job: {each: key_of(job.tenant, each) for each in addresses_of(job.content)}
        for job in jobs
        if job.tenant in tenants and job.kind == EMAIL
    }
    if not asked:
        return jobs
    keys = [(job.tenant, key) for job in jobs for key in set(asked.get(job.lease.job, {}).values())]
    rows = await session.fetch("suppressions_find", keys=keys, now=now)
    suppressed = {(tenant, key) for tenant, key in rows}
    return [_told(job, asked.get(job.lease.job, {}), suppressed) for job in jobs]


def _told(
    job: LeasedJob, keys: Mapping[str, str], suppressed: Collection[tuple[str, str]]
) -> LeasedJob:
    refused = frozenset(each for each, key in keys.items() if (job.tenant, key) in suppressed)
    return replace(job, suppressed=refused) if refused else job
