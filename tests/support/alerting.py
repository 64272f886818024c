"""Alerts for tests: two definitions, findings by hand, and a look at the store."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from carteiro.config import load
from carteiro.model.alerts import (
    About,
    Alert,
    AlertDefinition,
    AlertRules,
    AlertState,
    Finding,
    Notice,
    Severity,
)
from carteiro.policy import alert_states
from carteiro.policy.alerts import definitions
from carteiro.ports import Backend
from support.builders import ACME

MINUTE = timedelta(minutes=1)
SLOW, FULL, OFTEN = "MailSlow", "StoreFull", "TenantFails"


def a_definition(name: str, about: About = About.INSTALLATION, **changes: Any) -> AlertDefinition:
    """A definition; ``changes`` are its fields."""
    fields: dict[str, Any] = {
        "severity": Severity.WARNING,
        "condition": f"{name} holds.",
        "window": timedelta(hours=1),
        "threshold": 10,
        "lasts": timedelta(0),
        "action": "Look.",
        "runbook": "docs/runbooks/many-failures.md",
    }
    return AlertDefinition(name=name, about=about, **(fields | changes))


DEFINITIONS = {
    each.name: each
    for each in (
        a_definition(SLOW, lasts=5 * MINUTE),
        a_definition(FULL, severity=Severity.CRITICAL),
        a_definition(OFTEN, About.TENANT),
    )
}


def rules(**changes: Any) -> AlertRules:
    """The rules of tests; ``changes`` are their fields."""
    fields: dict[str, Any] = {
        "remind_after": timedelta(hours=4),
        "resolve_after": 2 * MINUTE,
        "most": 3,
    }
    return AlertRules(DEFINITIONS, **(fields | changes))


RULES = rules()


def full(value: float = 11) -> Finding:
    """The store is full."""
    return Finding(FULL, "", value, 10)


def slow(value: float = 11) -> Finding:
    """Mail is slow."""
    return Finding(SLOW, "", value, 10)


def unknown(name: str = FULL) -> Finding:
    """The condition may hold or not."""
    return Finding(name, "", 0, 10, is_known=False)


def often(tenant: str = ACME, value: float = 11) -> Finding:
    """The mails of a tenant fail often."""
    return Finding(OFTEN, tenant, value, 10)


async def moved(backend: Backend, *findings: Finding) -> list[str]:
    """Move the alerts; return the kinds of notices."""
    return kinds(await backend.alerts.move(findings, RULES))


def kinds(notices: Sequence[Notice]) -> list[str]:
    """The kinds of notices."""
    return [each.kind.value for each in notices]


async def states(backend: Backend) -> dict[str, AlertState]:
    """The states of all alerts, by name and subject."""
    pages = [await backend.alerts.list(resolved=each) for each in (False, True)]
    return {f"{row.name} {row.subject}".strip(): row.state for page in pages for row in page.rows}


async def the_alert(backend: Backend) -> Alert:
    """The only open one."""
    [alert] = (await backend.alerts.list()).rows
    return alert


NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)


def notices_of(name: str, subject: str, at: datetime = NOON) -> list[Notice]:
    """The notices of an alert of Carteiro that begins and ends."""
    known = {each.name: each for each in definitions(load(environ={}).alerts.thresholds)}
    real = AlertRules(known, resolve_after=timedelta(0))
    finding = Finding(name, subject, 101, known[name].threshold)
    begun = alert_states.step([], [finding], [], real, at)
    ended = alert_states.step(begun.alerts, [], [], real, at + MINUTE)
    return [*begun.notices, *ended.notices]


def a_notice(tenant: str = ACME, at: datetime = NOON) -> Notice:
    """The mails of a tenant begin to fail often."""
    [notice] = alert_states.step([], [often(tenant)], [], RULES, at).notices
    return notice
