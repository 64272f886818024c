"""Alerts, and the notices that report them to people."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from carteiro.model.basics import ZERO, TenantId, value

ALL_ALERTS = "*"  # a silence of every alert
DEAD_LETTERS = "NewDeadLetters"  # the name of the notices about them
TEST = "Test"


class Severity(StrEnum):
    """Urgency."""

    WARNING = "warning"
    CRITICAL = "critical"


class About(StrEnum):
    """The kind of thing that an alert is about, and that the ``subject`` of a finding names."""

    INSTALLATION = "installation"  # an empty subject
    TENANT = "tenant"
    TEMPLATE = "template"  # tenant/type
    PROVIDER = "provider"


class Unit(StrEnum):
    """The unit of a threshold, and of the values that are compared with it."""

    COUNT = "count"
    SHARE = "share"  # 0 to 1
    SECONDS = "seconds"


@value
class AlertDefinition:
    """One row of the table of alerts: the condition is that the value is above the threshold."""

    name: str
    severity: Severity
    condition: str  # one sentence
    threshold: float
    action: str  # what to do, in one sentence
    runbook: str  # path of the page, and its heading
    about: About = About.INSTALLATION
    window: timedelta = ZERO  # the time that is looked at; zero: this moment
    lasts: timedelta = ZERO  # the time for which the condition must hold before the alert fires
    unit: Unit = Unit.COUNT
    setting: str = ""  # the key of the threshold in [alerts]; empty: it has none
    summary: str = ""  # for Prometheus: one sentence with the value
    expression: str = ""  # for Prometheus: the value that is compared with the threshold
    given: str = ""  # for Prometheus: another condition, or empty


@value
class Finding:
    """A condition that holds now."""

    alert: str  # the name of its definition
    subject: str
    value: float
    threshold: float


@value
class AlertRules:
    """The definitions by name, and the times of their notices.

    ``remind_after``: 0 is never. ``resolve_after``: the time without the condition. ``most``: open alerts of one name.
    ``dead_letters_every``: interval of notices about dead letters, None: never; those of ``system`` do not count.
    """

    definitions: Mapping[str, AlertDefinition]
    remind_after: timedelta = timedelta(hours=4)
    resolve_after: timedelta = timedelta(minutes=2)
    most: int = 20
    dead_letters_every: timedelta | None = None
    system: TenantId = TenantId("")  # the tenant that sends notices


class AlertState(StrEnum):
    """The states of an alert, in order. A pending alert has no notice."""

    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


@value
class Alert:
    """One alert about one subject. An empty subject of an alert about tenants: all those above the limit together.

    ``since`` is when the condition began to hold, ``seen_at`` when it was last seen to hold. ``told`` is the state of
    the last notice, at ``told_at``.
    """

    name: str
    subject: str
    tenant: TenantId  # empty: it is not about one
    state: AlertState
    value: float
    threshold: float
    since: datetime
    seen_at: datetime
    changed_at: datetime
    told: AlertState | None = None
    told_at: datetime | None = None
    acknowledged_by: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Name and subject: there is one alert of each pair."""
        return self.name, self.subject


class AlertRefusal(StrEnum):
    """The reason why an alert cannot be acknowledged, or silenced."""

    UNKNOWN = "unknown"
    NOT_FIRING = "not firing"
    TOO_MANY = "too many"


@value
class Silence:
    """Suppresses notices about an alert (`ALL_ALERTS`: any) until a moment; an empty subject: any subject."""

    id: str
    alert: str
    subject: str
    tenant: TenantId
    reason: str
    by: str
    created_at: datetime
    until: datetime


class NoticeKind(StrEnum):
    """Reason of a notice: a change of state, or something else."""

    FIRING = "firing"
    REMINDER = "reminder"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    DEAD_LETTERS = "dead_letters"
    TEST = "test"


@value
class DeadCount:
    """New dead letters of one tenant with one code."""

    tenant: TenantId
    code: str
    count: int


@value
class Notice:
    """A message to people, once per channel. Its id is the same each time it is sent.

    ``counts``: of a notice about dead letters, the largest first.
    """

    id: str
    at: datetime
    kind: NoticeKind
    alert: str
    subject: str
    tenant: TenantId
    severity: Severity
    value: float
    threshold: float
    since: datetime
    by: str = ""
    condition: str = ""
    action: str = ""
    runbook: str = ""
    counts: tuple[DeadCount, ...] = ()


@value
class DueNotice:
    """A notice that a channel does not have yet, the number of tries, and the last error."""

    notice: Notice
    channel: str
    tries: int
    due_at: datetime
    error: str
