"""Redrives as JSON, for the API and the command line."""

from dataclasses import asdict
from typing import Any

from pydantic.alias_generators import to_camel

from carteiro.model import MILLISECOND, DeadFilter, DeadGroup, Ramp, Redrive, RedrivePlan
from carteiro.policy.ramp import expected
from carteiro.views.moments import in_iso


def redrive_json(redrive: Redrive) -> dict[str, Any]:
    """A redrive with its pace and its progress."""
    course, ramp = redrive.course, redrive.ramp
    return {
        "id": redrive.id,
        "companyId": redrive.tenant,
        "state": redrive.state.value,
        "reason": redrive.reason,
        "by": redrive.by,
        "provider": redrive.provider,
        "total": redrive.total,
        "redriven": course.redriven,
        "sent": course.sent,
        "failed": course.failed,
        "cancelled": course.cancelled,
        "late": course.late,
        "watched": course.watched,
        "skipped": course.skipped,
        "ratePerSecond": course.rate or None,
        "canary": ramp.canary,
        "firstRatePerSecond": ramp.first_rate,
        "maxRatePerSecond": ramp.max_rate,
        "maxFailedShare": ramp.max_failed,
        "matching": _matching(redrive.wanted),
        "startedAt": in_iso(redrive.started_at),
        "changedAt": in_iso(redrive.changed_at),
    }


def plan_json(plan: RedrivePlan, ramp: Ramp) -> dict[str, Any]:
    """A plan with its expected time."""
    return {
        "total": plan.total,
        "expectedMs": expected(plan.total, ramp) // MILLISECOND,
        "groups": [_group(each) | {"cause": plan.causes.get(each.key)} for each in plan.groups],
        "tenants": [_group(each) for each in plan.tenants],
        "sample": list(plan.sample),
    }


def _group(group: DeadGroup) -> dict[str, Any]:
    oldest, newest = in_iso(group.oldest), in_iso(group.newest)
    return {"key": group.key, "count": group.count, "oldest": oldest, "newest": newest}


def _matching(wanted: DeadFilter) -> dict[str, Any]:
    """The given parts of a filter."""
    given = {to_camel(name): each for name, each in asdict(wanted).items() if each is not None}
    for name in ("isRedriven", "without"):
        given.pop(name, None)
    if "tenant" in given:
        given["companyId"] = given.pop("tenant")
    for name in ("movedAfter", "movedBefore"):
        if name in given:
            given[name] = in_iso(given[name])
    return given
