"""Conversion between columns and values of tenants and their settings, for every SQL store."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

import orjson

from carteiro import model
from carteiro.policy.fairness import priority, rounds_without
from carteiro.stores.columns import made, maybe_moment


def tenant_of(row: Sequence[Any]) -> model.Tenant:
    """A tenant from the columns of the statement ``tenants_find``."""
    return made(model.Tenant, row)


def tenant_row(tenant: model.Tenant) -> list[object]:
    """The columns that a definition of a tenant sets, in the order of its fields."""
    return [_stored(getattr(tenant, each.name)) for each in fields(tenant)]


def _stored(part: object) -> object:
    match part:
        case tuple():
            return orjson.dumps(part).decode()
        case model.ApiLimits():
            return orjson.dumps(astuple(part)).decode()
        case _:
            return part


def standing_of(
    kind: model.KindName, row: Sequence[Any], fairness: model.Fairness
) -> model.Standing:
    """The standing of a tenant, out of the columns of the statement ``standings``."""
    tenant, last_at, turn, since, processed, consecutive, jobs, in_flight, seated = row
    rounds = 0 if since is None else rounds_without(turn, since, seated)
    return model.Standing(
        tenant=model.TenantId(tenant),
        kind=kind,
        last_processed_at=maybe_moment(last_at),
        rounds_without_processing=rounds,
        current_priority=priority(rounds, fairness),
        total_processed=processed,
        consecutive_batch_count=min(consecutive, fairness.max_jobs_per_tenant_batch),
        waiting=jobs - in_flight,
        in_flight=in_flight,
    )


def fairness_of(setting: str | None) -> model.Fairness | None:
    """The fairness settings that were stored, if any were."""
    return None if setting is None else model.Fairness(**orjson.loads(setting))


def fairness_text(fairness: model.Fairness) -> str:
    """Fairness settings as they are stored."""
    return orjson.dumps(asdict(fairness)).decode()
