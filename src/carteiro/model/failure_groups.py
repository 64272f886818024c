"""Failure groups: messages that fail alike, and the state of the cause."""

from datetime import datetime
from enum import StrEnum

from carteiro.model.basics import MessageId, TenantId, value
from carteiro.model.failures import Category, Scope


class GroupState(StrEnum):
    """The state of a group; a resolved one opens again when it recurs."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    IGNORED = "ignored"


@value
class FailureGroup:
    """Failures of one provider, by one rule, for one reason; an empty text: there is none.

    ``error`` is the name of the error, as services and Python write it; ``reason`` has only known words. ``code``,
    ``category`` and ``scope`` are those of the last failure. ``opened_at`` is the first failure since it was last
    resolved. ``attempts`` counts failed attempts, ``deaths`` how often a message became a dead letter: one that is
    redriven and dies again counts twice.
    """

    id: str
    provider: str
    rule: str
    error: str
    reason: str
    code: str
    category: Category
    scope: Scope
    state: GroupState
    first_seen: datetime
    opened_at: datetime
    last_seen: datetime
    resolved_at: datetime | None
    attempts: int
    deaths: int

    @property
    def cause(self) -> str:
        """It in words: provider, code and reason."""
        return (
            f"{self.provider}: {f'{self.code} '.lstrip()}{self.reason or self.error or self.rule}"
        )


@value
class FailureFilter:
    """A selection of failure groups; None matches any. Of a tenant: with its own counts and times."""

    tenant: TenantId | None = None
    state: GroupState | None = None
    provider: str | None = None


@value
class HourOfFailures:
    """Failures of a group in one hour."""

    at: datetime
    attempts: int
    deaths: int


@value
class TenantFailures:
    """Failures of a group in the shown hours, of one tenant; None: of all others together."""

    tenant: TenantId | None
    attempts: int
    deaths: int


@value
class FailureReport:
    """A group with its latest hours, the tenants in them, most failures first, and the newest messages."""

    group: FailureGroup
    hours: list[HourOfFailures]
    tenants: list[TenantFailures]
    samples: list[MessageId]
