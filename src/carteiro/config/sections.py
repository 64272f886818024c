"""The settings by section: each a frozen model, all of them together `Settings`.

Here durations are `timedelta`; at the edges their names end in ``_ms``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache, cached_property
from typing import Annotated, Any, Literal, TypeVar

import pydantic
from pydantic import Field
from pydantic.fields import FieldInfo

from carteiro import model
from carteiro.config import values
from carteiro.config.alerts import AlertSettings, NoticeSettings
from carteiro.config.own_codes import refuse_unfit
from carteiro.config.providers import answers, is_remote, specs
from carteiro.config.tickets import TicketSettings
from carteiro.errors import ConfigError
from carteiro.model.alerts import AlertRules
from carteiro.policy.alerts import definitions
from carteiro.policy.own_rules import OwnRule, bounded_pattern
from carteiro.policy.retry import PRESETS, Charge, Environment, RetryPolicy, default_preset
from carteiro.policy.span_budget import SpanLimits
from carteiro.policy.stage import Stage
from carteiro.policy.tenancy import SendingRules
from carteiro.policy.unsubscribe import SHORTEST_SECRET, OneClick, one_click
from carteiro.ports.upkeep import Kept

Shape = TypeVar("Shape", bound=pydantic.BaseModel)

_SLOTS_WITH_NETWORK = 5
_SLOTS_WITHOUT = 200
_LATEST_START = timedelta(milliseconds=250)
_MOST_ATTEMPTS = 1000
_PRESET_NAME = re.compile(r"[a-z0-9_-]{1,40}", re.ASCII)


class DeliverySettings(values.Section):
    """Time limits of deliveries, and the handling of unknown outcomes."""

    call_limit: values.HoldDuration = Field(alias="call_limit_ms")
    hold_margin: values.HoldDuration = Field(alias="hold_margin_ms")
    lease: values.HoldDuration = Field(alias="lease_ms")
    grace: values.Duration = Field(alias="grace_ms")
    default_ttl: values.SomeDuration = Field(alias="default_ttl_ms")
    max_in_doubt_resends: values.Count
    relay_headers: values.HeaderNames

    @property
    def allowed_relay_headers(self) -> frozenset[str]:
        """The allowed relay control headers, in lower case."""
        return frozenset(self.relay_headers.lower().split())


class PresetSettings(values.Section):
    """A retry preset of the operator's own: waits that double, or a table of them."""

    attempts: Annotated[int, Field(ge=1, le=_MOST_ATTEMPTS, strict=True)]
    base: values.RetryWait | None = Field(default=None, alias="base_ms")
    cap: values.RetryWait | None = Field(default=None, alias="cap_ms")
    table: Annotated[tuple[values.RetryWait, ...], Field(max_length=_MOST_ATTEMPTS)] = Field(
        default=(), alias="table_ms"
    )
    jitter: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.25

    @pydantic.model_validator(mode="after")
    def _is_one_of_both(self) -> "PresetSettings":
        if (self.base is None) == (not self.table):
            raise ValueError("should have base_ms or table_ms, and not both")
        if self.cap is not None and self.base is None:
            raise ValueError(
                "should have cap_ms only with base_ms: a table ends with its own last wait"
            )
        if self.cap is not None and self.base is not None and self.cap < self.base:
            raise ValueError("should have a cap_ms that is not below base_ms")
        return self

    def as_value(self) -> RetryPolicy:
        """The same, for policies."""
        return RetryPolicy(
            max_attempts=self.attempts,
            base=self.base or model.ZERO,
            cap=timedelta.max if self.cap is None else self.cap,
            jitter=self.jitter,
            table=self.table,
        )


def _written_as_presets(raw: object) -> object:
    with suppress(ValueError):
        raw = json.loads(raw) if isinstance(raw, str) else raw
    if not isinstance(raw, dict) or not all(isinstance(each, dict) for each in raw.values()):
        raise ValueError(
            "should be [retry.presets.NAME] tables in a settings file, or an object of them as JSON"
        )
    for name in raw:
        if not _PRESET_NAME.fullmatch(name):
            raise ValueError(
                f"should have names of 1 to 40 small letters, digits, - and _, unlike {name!r}"
            )
        if name in PRESETS:
            raise ValueError(f"should not use the name of a built-in preset: {name}")
    return raw


class RetrySettings(values.Section):
    """Retries; an empty preset means the environment's."""

    presets: Annotated[dict[str, PresetSettings], pydantic.BeforeValidator(_written_as_presets)]
    preset: str
    charge: Charge
    patient: bool
    learn: Literal["off", "suggest", "apply"]

    @pydantic.field_validator("preset")
    @classmethod
    def _is_known(cls, name: str, info: pydantic.ValidationInfo) -> str:
        if "presets" in info.data and name not in {"", *PRESETS, *info.data["presets"]}:
            known = ", ".join([*PRESETS, *info.data["presets"]])
            raise ValueError(f"should be one of {known}, a name of [retry.presets], or empty")
        return name


class SenderSettings(values.Section):
    """Sender addresses of tenants."""

    without_domains: Literal["default_from", "any"]


class FairnessSettings(values.Section):
    """Turns of the tenants."""

    enable_round_robin: bool
    max_jobs_per_tenant_batch: values.Batch
    round_robin_base_priority: values.SomeCount
    priority_increment_per_round: values.Count
    max_round_robin_priority: values.SomeCount

    def as_value(self) -> model.Fairness:
        """The same, for stores and policies."""
        return model.Fairness(**self.model_dump())


class SendLimitSettings(values.Section):
    """Limit of attempts over all workers; a count of 0 means no limit."""

    count: values.Count
    per: values.SomeDuration = Field(alias="per_ms")

    def as_value(self) -> model.SendLimit | None:
        """The same, for stores."""
        return model.SendLimit(self.count, self.per) if self.count else None

    @property
    def tolerance(self) -> timedelta:
        """Delay between claim and start of an attempt; claims count for this much longer than the period."""
        return min(self.per / 20, _LATEST_START) if self.count else timedelta(0)


class WorkerSettings(values.Section):
    """Concurrency of a worker; 0 e-mail slots mean the provider's default."""

    email_slots: values.Count
    async_task_slots: values.SomeCount
    sync_task_threads: values.SomeCount
    claim_ahead: values.Duration = Field(alias="claim_ahead_ms")

    def email_slots_for(self, *, network: bool) -> int:
        """The e-mail slots, with or without a network provider."""
        return self.email_slots or (_SLOTS_WITH_NETWORK if network else _SLOTS_WITHOUT)


class ApiSettings(values.Section):
    """Listen address and request limits; port 0 lets the system choose one."""

    host: values.Text
    port: Annotated[int, Field(ge=0, le=65535)]
    trusted_proxies: values.Networks
    request_timeout: values.SomeDuration = Field(alias="request_timeout_ms")
    attempt_wait: values.SomeDuration = Field(alias="attempt_wait_ms")
    max_connections: values.SomeCount
    max_connections_per_address: values.SomeCount
    max_requests_per_tenant: values.SomeCount
    max_body_bytes_per_tenant: values.SomeCount
    max_unchecked_body_bytes: values.SomeCount
    unknown_keys_per_minute: values.Count
    previews_per_minute: values.Count
    suppression_changes_per_minute: values.Count
    changes_per_minute: values.Count
    per_minute: values.Limit
    per_hour: values.Limit
    per_day: values.Limit

    @property
    def limits(self) -> model.ApiLimits:
        """Rate limits of a tenant without its own; a setting of 0 means no limit."""
        return model.ApiLimits(self.per_minute or None, self.per_hour or None, self.per_day or None)


class ConsoleSettings(values.Section):
    """Pages for people; without a header of users they sign in with a token."""

    enabled: bool
    session: values.SomeDuration = Field(alias="session_ms")
    user_header: Annotated[
        str,
        values.shaped(
            r"([A-Za-z0-9-]{1,64})?", "the name of a header of 1 to 64 letters, digits and -"
        ),
    ]
    user_role: model.Role


class StorageSettings(values.Section):
    """Storage limits of a tenant, except for messages."""

    templates: Annotated[int, Field(ge=1, le=model.MOST_TEMPLATES)]
    template_versions: Annotated[int, Field(ge=1, le=model.MOST_TEMPLATE_VERSIONS)]
    template_bytes: values.SomeCount
    suppressions: values.SomeCount

    @property
    def template_limits(self) -> model.TemplateLimits:
        """The limits of templates, for stores."""
        return model.TemplateLimits(self.templates, self.template_versions, self.template_bytes)


class RetentionSettings(values.Section):
    """Retention of finished messages, audit rows, resolved alerts and the sandbox's inbox; None is forever."""

    bodies: values.DurationOrNone = Field(alias="bodies_ms")
    history: values.DurationOrNone = Field(alias="history_ms")
    audit: values.AuditRetention = Field(alias="audit_ms")
    alerts: values.DurationOrNone = Field(alias="alerts_ms")
    inbox: values.DurationOrNone = Field(alias="inbox_ms")

    @property
    def kept(self) -> Kept:
        """Retention of what belongs to no message, for stores."""
        return Kept(audit=self.audit, alerts=self.alerts, inbox=self.inbox)


class RollupSettings(values.Section):
    """Retention of figures and of failure groups, and the tenants and templates that a minute or hour keeps."""

    minutes: values.SomeDuration = Field(alias="minutes_ms")
    hours: values.SomeDuration = Field(alias="hours_ms")
    failures: values.SomeDuration = Field(alias="failures_ms")
    max_tenants: values.SomeCount


class DeadLetterSettings(values.Section):
    """Retention and size of the dead letter index, and the folder of its exports."""

    ttl: values.SomeDuration = Field(alias="ttl_ms")
    max_entries: values.SomeCount
    export_folder: str


class AutomaticRedriveSettings(values.Section):
    """Redrives of dead letters whose provider has recovered."""

    enabled: bool
    cool_down: values.RetryWait = Field(alias="cool_down_ms")
    rounds: Annotated[int, Field(ge=1, le=model.MOST_AUTOMATIC_ROUNDS)]

    def as_value(self) -> model.AutomaticPlan:
        """The same, for policies."""
        return model.AutomaticPlan(self.enabled, self.cool_down, self.rounds)


class SqliteSettings(values.Section):
    """Settings of the SQLite store."""

    min_free_bytes: values.Count
    busy_timeout: values.Duration = Field(alias="busy_timeout_ms")


class PostgresSettings(values.Section):
    """Settings of the Postgres store."""

    connections: values.SomeCount
    command_timeout: values.SomeDuration = Field(alias="command_timeout_ms")
    prepared_statements: bool


class MetricsSettings(values.Section):
    """Metrics page, and the tenants with figures of their own; an empty host means only on the API."""

    host: str
    port: Annotated[int, Field(ge=0, le=65535)]
    top_tenants: Annotated[int, Field(ge=0, le=1000)]


class TracingSettings(values.Section):
    """Spans of messages, exported to a collector; without an endpoint the variables of OpenTelemetry name it."""

    enabled: bool
    endpoint: values.PageUrlOrNone
    spans_per_minute: values.SomeCount
    spans_per_minute_per_tenant: values.SomeCount

    @property
    def target(self) -> str | None:
        """The collector's URL, empty for that of the environment; None: there is no tracing."""
        return self.endpoint if self.enabled else None

    @property
    def limits(self) -> SpanLimits:
        """The same, for tracing."""
        return SpanLimits(self.spans_per_minute, self.spans_per_minute_per_tenant)


class UnsubscribeSettings(values.Section):
    """Address and secrets of the links to unsubscribe; without a URL there are none."""

    url: values.PublicUrlOrNone
    secrets: values.SecretReference

    @pydantic.field_validator("secrets")
    @classmethod
    def _seals(cls, secrets: str, info: pydantic.ValidationInfo) -> str:
        if info.data.get("url") and not secrets:
            raise ValueError("should be set with unsubscribe.url: nobody may guess a link")
        return secrets


def _written_as_tables(raw: object) -> object:
    with suppress(ValueError):
        raw = json.loads(raw) if isinstance(raw, str) else raw
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise ValueError(
            "should be [[verdicts]] tables in a settings file, or a list of them as JSON"
        )
    names = [each.get("name") for each in raw]
    if twice := {str(name) for name in names if names.count(name) > 1}:
        raise ValueError(f"should have names that differ: {', '.join(sorted(twice))}")
    return raw


def _bounded(raw: str) -> str:
    bounded_pattern(raw)
    return raw


class VerdictSettings(values.Section):
    """A rule of the operator: conditions on an answer, and its verdict."""

    name: Annotated[
        str, values.shaped(r"[a-z0-9_-]{1,40}", "1 to 40 small letters, digits, - and _")
    ]
    provider: values.AnsweringProvider = ""
    stage: Stage | None = None
    mx: str = ""
    code: str = ""
    enhanced: Annotated[
        str, values.shaped(r"([245]\.\d{1,3}\.\d{1,3})?", "an enhanced code such as 5.7.1")
    ] = ""
    text: Annotated[str, pydantic.AfterValidator(_bounded)] = ""
    category: model.Category
    retryable: Annotated[bool, Field(strict=True)]
    scope: model.Scope

    @pydantic.field_validator("code")
    @classmethod
    def _can_be_answered(cls, code: str, info: pydantic.ValidationInfo) -> str:
        if code and "provider" in info.data:
            refuse_unfit(code, info.data["provider"])
        return code

    @pydantic.model_validator(mode="after")
    def _has_a_condition(self) -> "VerdictSettings":
        if not any((self.provider, self.stage, self.mx, self.code, self.enhanced, self.text)):
            raise ValueError("should have a condition: provider, stage, mx, code, enhanced or text")
        is_smtp = not self.provider or answers()[self.provider].is_smtp
        if not is_smtp and (self.stage or self.mx or self.enhanced):
            raise ValueError(
                f"should have no stage, mx or enhanced: answers of {self.provider} have none"
            )
        return self

    def as_value(self) -> OwnRule:
        """The same, for policies."""
        return OwnRule(
            **(self.model_dump() | {"text": bounded_pattern(self.text) if self.text else None})
        )


class LogSettings(values.Section):
    """Log settings."""

    level: values.LogLevel


@model.value
class Given:
    """One setting as written, and its origin."""

    key: str
    raw: object
    origin: str


class Settings(values.Section):
    """All settings, checked."""

    store: values.StoreUrl
    queue: values.QueueUrl
    provider: values.Route
    environment: Environment
    verdicts: Annotated[tuple[VerdictSettings, ...], pydantic.BeforeValidator(_written_as_tables)]
    delivery: DeliverySettings
    retry: RetrySettings
    fairness: FairnessSettings
    send_limit: SendLimitSettings
    tiers: dict[str, values.Weight]
    senders: SenderSettings
    tenant_routes: dict[str, values.Route] = Field(default_factory=dict)
    type_routes: dict[str, values.Route] = Field(default_factory=dict)
    workers: WorkerSettings
    api: ApiSettings
    console: ConsoleSettings
    storage: StorageSettings
    retention: RetentionSettings
    rollups: RollupSettings
    dead_letters: DeadLetterSettings
    automatic_redrive: AutomaticRedriveSettings
    alerts: AlertSettings
    notices: NoticeSettings
    unsubscribe: UnsubscribeSettings
    sqlite: SqliteSettings
    postgres: PostgresSettings
    metrics: MetricsSettings
    tracing: TracingSettings
    tickets: TicketSettings
    ticket_urls: dict[str, values.PageUrl] = Field(default_factory=dict)
    log: LogSettings
    _given: Mapping[str, Given] = pydantic.PrivateAttr(default_factory=dict)

    @property
    def retry_preset(self) -> str:
        """The preset that was named, else the environment's."""
        return self.retry.preset or default_preset(self.environment)

    @cached_property
    def presets(self) -> Mapping[str, RetryPolicy]:
        """All presets: the built-in ones, and the operator's own."""
        own = {name: each.as_value() for name, each in self.retry.presets.items()}
        return {**PRESETS, **own}

    @property
    def routes(self) -> dict[str, str]:
        """Every route by its key."""
        free = {"tenant_routes": self.tenant_routes, "type_routes": self.type_routes}
        named = {f"{table}.{key}": each for table, own in free.items() for key, each in own.items()}
        return {"provider": self.provider, **named}

    @property
    def has_network_provider(self) -> bool:
        """True if any mail goes to a server outside this machine."""
        return any(
            is_remote(name) for each in self.routes.values() for name in values.provider_names(each)
        )

    @property
    def default_from_only(self) -> bool:
        """True if a tenant without its own domains may use only its default From."""
        return self.has_network_provider and self.senders.without_domains == "default_from"

    @property
    def sending_rules(self) -> SendingRules:
        """The operator's rules for e-mails that are submitted or edited."""
        return SendingRules(
            default_ttl=self.delivery.default_ttl,
            relay_headers=self.delivery.allowed_relay_headers,
            default_from_only=self.default_from_only,
            one_click=self.one_click,
        )

    @property
    def automatic_plan(self) -> model.AutomaticPlan:
        """When dead letters are redriven automatically."""
        return self.automatic_redrive.as_value()

    @cached_property
    def one_click(self) -> OneClick | None:
        """The links to unsubscribe; None: there are none. `ConfigError` if a secret is missing."""
        if not self.unsubscribe.url:
            return None
        offer = one_click(self.unsubscribe.url, self.secret("unsubscribe.secrets"))
        if offer is None:
            raise ConfigError(
                "unsubscribe.secrets does not lead to secrets, separated by spaces: each is whsec_ and base64 of"
                f" at least {SHORTEST_SECRET} bytes"
            )
        return offer

    @property
    def own_rules(self) -> tuple[OwnRule, ...]:
        """The operator's rules, for policies."""
        return tuple(each.as_value() for each in self.verdicts)

    def alert_rules(self) -> AlertRules:
        """The definitions of alerts, and the times of their notices."""
        return self.notices.rules(definitions(self.alerts.thresholds))

    def section(self, shape: type[Shape]) -> Shape:
        """The section of this shape, as the spec of a provider adds it."""
        return next(each for _, each in self if isinstance(each, shape))

    def secret(self, key: str) -> str:
        """Return the secret behind the reference at ``key``; `ConfigError` if there is none."""
        given = self._given[key]
        try:
            return values.secret(str(given.raw))
        except ConfigError as error:
            raise ConfigError(f"{key} (from {given.origin}) = {error}") from None

    def given(self) -> list[Given]:
        """Every setting as written, with its origin, in the order of the default file."""
        return list(self._given.values())

    def origin(self, key: str) -> str:
        """Origin of the value of ``key``; keys are those of the default file: ``delivery.lease_ms``."""
        return self._given[key].origin


# Their keys are the user's own.
FREE_TABLES = frozenset({"tiers", "tenant_routes", "type_routes", "ticket_urls"})


@cache
def settings_type() -> type[Settings]:
    """All settings: the sections above, and those that providers add; several may add to one."""
    shapes: dict[str, list[type[pydantic.BaseModel]]] = {}
    for spec in specs().values():
        for table, shape in spec.sections.items():
            if table in Settings.model_fields:
                raise ConfigError(f"provider {spec.name}: [{table}] is a section of Carteiro's own")
            shapes.setdefault(table, []).insert(0, shape)  # the fields of the last base come first
    added: dict[str, Any] = {
        table: (pydantic.create_model(table, __base__=tuple(bases)), ...)
        for table, bases in shapes.items()
    }
    return pydantic.create_model("Settings", __base__=Settings, **added)


@cache
def setting_keys() -> Mapping[str, FieldInfo]:
    """Every setting that has a name of ours, and what it may be, in the order of the defaults."""
    return {key: field for key, field in _fields(settings_type()) if key not in FREE_TABLES}


def _fields(section: type[pydantic.BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, pydantic.BaseModel):
            yield from _fields(field.annotation, f"{name}.")
        else:
            yield prefix + (field.alias or name), field
