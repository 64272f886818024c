"""Conversion between columns and values of tenants and their settings, for every SQL store."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from carteiro import model
from carteiro.policy.fairness import priority, rounds_without
from carteiro.stores.columns import maybe_moment


def tenant_of(row: Sequence[Any]) -> model.Tenant:
    """A tenant out of the columns of the statement ``tenants_find``."""
    identity, name, tier, weight, cap, rate, paused, disabled, sender, *rest = row
    domains, networks, limits, preset, external_id_is_key = rest
    return model.Tenant(
        id=identity,
        name=name,
        tier=tier,
        weight=weight,
        cap=cap,
        rate_per_second=rate,
        paused=bool(paused),
        disabled=bool(disabled),
        default_from=sender,
        from_domains=tuple(orjson.loads(domains)),
        allowed_networks=tuple(orjson.loads(networks)),
        limits=None if limits is None else model.ApiLimits(*orjson.loads(limits)),
        retry_preset=preset,
        external_id_is_key=bool(external_id_is_key),
    )


def tenant_columns(tenant: model.Tenant) -> Mapping[str, object]:
    """The columns that a definition of a tenant sets, in the order of the statement ``tenants_find``."""
    return {
        "id": tenant.id,
        "name": tenant.name,
        "tier": tenant.tier,
        "weight": tenant.weight,
        "cap": tenant.cap,
        "rate_per_second": tenant.rate_per_second,
        "paused": tenant.paused,
        "disabled": tenant.disabled,
        "default_from": tenant.default_from,
        "from_domains": _json(tenant.from_domains),
        "allowed_networks": _json(tenant.allowed_networks),
        "limits": _limits_text(tenant.limits),
        "retry_preset": tenant.retry_preset,
        "external_id_is_key": tenant.external_id_is_key,
    }


def _limits_text(limits: model.ApiLimits | None) -> str | None:
    if limits is None:
        return None
    return _json([limits.per_minute, limits.per_hour, limits.per_day])


def _json(listed: Sequence[object]) -> str:
    return orjson.dumps(listed).decode()


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
