"""Finds the suppressed addresses of claimed e-mails, for every SQL store.

A claim loads for each tenant whether it has any suppressions. If it has some, the addresses of the whole claim are
looked up in one statement. If it has none, nothing is read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from carteiro.model import EMAIL, LeasedJob, MessageId, TenantId
from carteiro.policy.suppression import addresses_of, key_of
from carteiro.stores.sql.session import Session

Keys: TypeAlias = Mapping[MessageId, Mapping[str, str]]  # of the addresses of e-mails


def asked_of(jobs: Sequence[LeasedJob], tenants: Collection[str]) -> Keys:
    """The addresses to look up: those of e-mails whose tenants have suppressions."""
    return {
        job.lease.job: {each: key_of(job.tenant, each) for each in addresses_of(job.content)}
        for job in jobs
        if job.tenant in tenants and job.kind == EMAIL
    }


def places_in(jobs: Sequence[LeasedJob], asked: Keys) -> list[tuple[TenantId, str]]:
    """The tenants and keys to look up."""
    return [(job.tenant, key) for job in jobs for key in set(asked.get(job.lease.job, {}).values())]


def heeded(
    jobs: Sequence[LeasedJob], asked: Keys, suppressed: Collection[tuple[str, str]]
) -> list[LeasedJob]:
    """The jobs with their suppressed addresses."""
    return [_told(job, asked.get(job.lease.job, {}), suppressed) for job in jobs]


async def with_suppressed(
    session: Session, jobs: list[LeasedJob], tenants: Collection[str], now: int
) -> list[LeasedJob]:
    """Return the jobs with their suppressed addresses; ``tenants`` are those that have suppressions."""
    asked = asked_of(jobs, tenants) if tenants else {}
    if not asked:
        return jobs
    rows = await session.fetch("suppressions_find", keys=places_in(jobs, asked), now=now)
    return heeded(jobs, asked, {(tenant, key) for tenant, key in rows})


def _told(
    job: LeasedJob, keys: Mapping[str, str], suppressed: Collection[tuple[str, str]]
) -> LeasedJob:
    refused = frozenset(each for each, key in keys.items() if (job.tenant, key) in suppressed)
    return replace(job, suppressed=refused) if refused else job
