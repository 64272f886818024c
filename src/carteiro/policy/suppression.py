"""Suppressed addresses of a tenant, and for how long. Pure: no clock, no I/O.

Each reason of an address is a separate record. A record depends only on the reports, never on their
order: late and repeated reports give the same result.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from carteiro import model
from carteiro.policy.addresses import judge_address

SUPPRESSED = model.Failure(
    code="SUPPRESSED",
    category=model.Category.VALIDATION_ERROR,
    retryable=False,
    scope=model.Scope.RECIPIENT,
    reason="the address is on the tenant's suppression list",
    rule="validation.recipient",
)
SOFT_BOUNCES = 3  # this number ...
SOFT_WINDOW = timedelta(days=30)  # ... within this time suppresses, for the same time
_WINDOW_MS = SOFT_WINDOW // timedelta(milliseconds=1)


class Record(NamedTuple):
    """A suppression as stored; times are milliseconds since 1970.

    ``address`` None: it was erased. ``expires_at`` None: never; from that time on the record has ended.
    ``bounces`` are the times of the last soft bounces.
    """

    key: str
    reason: model.SuppressionReason
    address: str | None
    created_at: int
    expires_at: int | None
    is_active: bool
    bounces: tuple[int, ...] = ()

    def is_over(self, now: int) -> bool:
        """True if it has expired."""
        return self.expires_at is not None and self.expires_at <= now


class Report(NamedTuple):
    """A new suppression, its times in milliseconds."""

    key: str
    reason: model.SuppressionReason
    address: str | None
    at: int
    expires_at: int | None


def key_of(tenant: model.TenantId, address: str) -> str:
    """The key of an address: equal in any case of letters, different for each tenant.

    A hash, so that an erased address stays suppressed without being stored.
    """
    return key_of_normal(tenant, judge_address(address) or address)


def key_of_normal(tenant: model.TenantId, address: str) -> str:
    """The key of an address in normal form."""
    text = f"{tenant}\0{address.casefold()}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def merged(known: Record | None, report: Report) -> Record:
    """The record after a report."""
    if report.reason is model.SuppressionReason.SOFT_BOUNCE:
        return _counted(known, report)
    if report.reason is model.SuppressionReason.MANUAL:  # the last one wins
        return _active(report, since=report.at, expires_at=report.expires_at)
    since = report.at if known is None else min(known.created_at, report.at)
    if report.address is None and known is not None:
        report = report._replace(address=known.address)
    return _active(report, since=since, expires_at=None)


def _active(report: Report, *, since: int, expires_at: int | None) -> Record:
    return Record(report.key, report.reason, report.address, since, expires_at, is_active=True)


def _counted(known: Record | None, report: Report) -> Record:
    before = () if known is None else known.bounces
    bounces = tuple(sorted({*before, report.at})[-SOFT_BOUNCES:])
    is_active = len(bounces) == SOFT_BOUNCES and bounces[-1] - bounces[0] <= _WINDOW_MS
    ends = bounces[-1] + _WINDOW_MS
    return Record(report.key, report.reason, report.address, bounces[0], ends, is_active, bounces)


def merge_all(known: Mapping[tuple[str, str], Record], reports: Iterable[Report]) -> list[Record]:
    """The records to store after many reports, by key and reason."""
    found = dict(known)
    changed: dict[tuple[str, str], Record] = {}
    for each in reports:
        place = each.key, each.reason.value
        changed[place] = found[place] = merged(found.get(place), each)
    return list(changed.values())


def addresses_of(content: str | None) -> Sequence[str]:
    """The addresses of a stored e-mail; empty if it cannot be read."""
    try:
        email: Any = orjson.loads(content or "")
    except orjson.JSONDecodeError:
        return ()
    if not isinstance(email, dict):
        return ()
    copies = [email.get(name) for name in ("cc", "bcc")]
    listed = [
        email.get("to"),
        *(each for some in copies if isinstance(some, list) for each in some),
    ]
    return [each for each in listed if isinstance(each, str)]


def suppressions(told: model.Feedback) -> list[model.NewSuppression]:
    """Suppressions that follow from feedback: permanent only for the narrow set, else a soft bounce."""
    reason = _reason(told)
    if reason is None:
        return []
    return [model.NewSuppression(each, reason, told.at) for each in told.recipients]


def _reason(told: model.Feedback) -> model.SuppressionReason | None:
    if told.type is model.EventType.COMPLAINED:
        return model.SuppressionReason.COMPLAINT
    if told.type is not model.EventType.BOUNCED:
        return None
    return {
        model.BounceKind.HARD: model.SuppressionReason.HARD_BOUNCE,
        model.BounceKind.SOFT: model.SuppressionReason.SOFT_BOUNCE,
    }.get(told.bounce or model.BounceKind.REJECTED)
