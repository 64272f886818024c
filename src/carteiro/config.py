"""Typed settings: default file < carteiro.toml < environment < flags; each value knows where it came from.

At the edges durations are whole milliseconds and their names end in ``_ms``; here they are
`timedelta` and the suffix is gone. ``config.default.toml`` is the only source of defaults.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from importlib import resources
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from carteiro.errors import ConfigError
from carteiro.model import (
    HEAVIEST,
    LIGHTEST,
    ApiLimits,
    Category,
    Fairness,
    Scope,
    SendLimit,
    value,
)
from carteiro.policy.addresses import judge_address
from carteiro.policy.lifecycle import LONGEST_HOLD
from carteiro.policy.own_rules import OwnRule, bounded_pattern
from carteiro.policy.retry import Charge, Environment, PresetName, default_preset
from carteiro.policy.stage import Stage

FILE_NAME = "carteiro.toml"
ENV_PREFIX = "CARTEIRO_"
ENV_FILE = "CARTEIRO_CONFIG"
# Variables that deployments of a ticket lane have already; a variable with our prefix wins over them.
KNOWN_VARIABLES = {
    "KAFKA_BOOTSTRAP_SERVERS": "tickets.bootstrap_servers",
    "KAFKA_DLQ_TOPIC": "tickets.dlq_topic",
    "KAFKA_MAX_RETRIES_BEFORE_DLQ": "tickets.max_retries_before_dlq",
}

PROVIDERS = ("sandbox", "smtp", "ses", "resend", "noop")

LogLevel: TypeAlias = Literal["debug", "info", "warn", "error"]

_MEMORY = "memory://"
_STORE = re.compile(r"sqlite:///.+|postgres(ql)?://.+", re.DOTALL)
_PLACE = r"([^/?#@,:\[\]]+|\[[^/?#@,]+\])(:\d+)?"  # host, or address of IPv6 in brackets, and port
_QUEUE = re.compile(
    rf"(rediss?|valkeys?)://([^/?#]*@)?{_PLACE}(/\d*)?(\?.*)?"
    rf"|redis\+sentinel://([^/?#]*@)?{_PLACE}(,{_PLACE})*/[^/?#]+(/\d*)?(\?.*)?"
    r"|unix://.+",
    re.DOTALL | re.ASCII,
)
_PASSWORD = re.compile(r"(://[^/@:]*:)[^/]*(?=@)|([?&]password=)[^&]*", re.IGNORECASE)

_SLOTS_WITH_NETWORK = 5
_SLOTS_WITHOUT = 200

# A service called "carteiro" makes Kubernetes set variables of these shapes in every pod.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP)")
_SERVICE_LINK_VALUES = ("tcp://", "udp://")

_REAL = frozenset({"smtp", "ses", "resend"})
_PROVIDER = re.compile(rf"{'|'.join(PROVIDERS)}|ses:[a-z]{{2}}(-[a-z]+)+-[0-9]+", re.ASCII)
_SECRETS = frozenset(
    {"smtp.password", "resend.api_key", "ses.secret_access_key", "feedback.resend_secret"}
)  # whoever wrote the secret itself must not see it in a log
_API_URL = re.compile(
    rf"https://{_PLACE}(/[^?#\s]*)?|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^?#\s]*)?",
    re.ASCII,
)
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]{3,}:[0-9]{12}:[A-Za-z0-9_-]{1,256}", re.ASCII)
_SECRET_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")


# --- the settings -----------------------------------------------------------------------------


def _duration(raw: object) -> timedelta:
    try:
        span = timedelta(milliseconds=int(str(raw)))
    except (ValueError, OverflowError):
        span = timedelta(-1)
    if span < timedelta(0):
        raise ValueError("should be whole milliseconds, 0 or more")
    return span


def _some_duration(raw: object) -> timedelta:
    span = _duration(raw)
    if not span:
        raise ValueError("should be whole milliseconds, 1 or more")
    return span


def _store(raw: str) -> str:
    if raw != _MEMORY and not _STORE.fullmatch(raw):
        raise ValueError("should be sqlite:///FILE, postgresql://HOST/DATABASE or memory://")
    return raw


def _queue(raw: str) -> str:
    if raw and not _QUEUE.fullmatch(raw):
        text = (
            "should be redis://HOST:PORT/NUMBER, redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/NUMBER,"
            " or empty; NUMBER, a database, is 0 or more"
        )
        raise ValueError(text)
    return raw


def provider_names(raw: str) -> tuple[str, ...]:
    """The providers of a route, in order."""
    return tuple(name.strip() for name in raw.split(","))


def _route(raw: str) -> str:
    names = provider_names(raw)
    if not all(_PROVIDER.fullmatch(name) for name in names):
        raise ValueError(
            f"should be {', '.join(PROVIDERS)} or ses:REGION, or several of them parted by commas"
        )
    if len(names) > 1 and not _REAL.issuperset(name.partition(":")[0] for name in names):
        raise ValueError(
            "should have sandbox and noop alone: they take what others cannot, and deliver it to nobody"
        )
    if len(set(names)) < len(names):
        raise ValueError("should name no provider twice")
    return ", ".join(names)


def without_password(raw: object) -> object:
    """A setting as it may be shown: an address may have a password in it."""
    return _PASSWORD.sub(r"\1\2***", raw) if isinstance(raw, str) else raw


def _networks(raw: str) -> str:
    try:
        for name in raw.split():
            ip_network(name)
    except ValueError:
        raise ValueError("should be networks or addresses, parted by spaces") from None
    return raw


def _topics(raw: str) -> str:
    if not all(_TOPIC.fullmatch(each) for each in raw.split()):
        raise ValueError("should be ARNs of SNS topics, parted by spaces")
    return raw


def _duration_or_none(raw: object) -> timedelta | None:
    return _duration(raw) or None


def _secret_reference(raw: object) -> str:
    """Never the secret: settings are shown, and written into messages."""
    if raw and not is_reference(str(raw)):
        raise ValueError("should be env:NAME or file:PATH, never the secret itself")
    return str(raw)


def is_reference(text: str) -> bool:
    """Whether it says where a secret is, and is none itself."""
    return bool(_SECRET_REFERENCE.fullmatch(text))


def _api_url(raw: str) -> str:
    if not _API_URL.fullmatch(raw):
        raise ValueError("should be https://HOST, or http:// on this machine")
    return raw.rstrip("/")


def _address_or_none(raw: object) -> str:
    normal = judge_address(str(raw)) if raw else ""
    if normal is None:
        raise ValueError("should be an e-mail address")
    return normal


Duration: TypeAlias = Annotated[timedelta, BeforeValidator(_duration)]
SomeDuration: TypeAlias = Annotated[timedelta, BeforeValidator(_some_duration)]
# Two of them make a hold: a longer one could not be told from a clock that stepped back.
HoldDuration: TypeAlias = Annotated[
    timedelta, BeforeValidator(_some_duration), Field(le=LONGEST_HOLD / 2)
]
DurationOrNone: TypeAlias = Annotated[timedelta | None, BeforeValidator(_duration_or_none)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
StoreUrl: TypeAlias = Annotated[str, AfterValidator(_store)]
QueueUrl: TypeAlias = Annotated[str, AfterValidator(_queue)]
Networks: TypeAlias = Annotated[str, AfterValidator(_networks)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Limit: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000_000)]
SomeCount: TypeAlias = Annotated[int, Field(ge=1)]
SecretReference: TypeAlias = Annotated[str, BeforeValidator(_secret_reference)]
Route: TypeAlias = Annotated[str, AfterValidator(_route)]
AddressOrNone: TypeAlias = Annotated[str, BeforeValidator(_address_or_none)]
ApiUrl: TypeAlias = Annotated[str, AfterValidator(_api_url)]
UrlOrNone: TypeAlias = Annotated[str, AfterValidator(lambda raw: raw and _api_url(raw))]
Topics: TypeAlias = Annotated[str, AfterValidator(_topics)]
TopicName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
MongoUrl: TypeAlias = Annotated[str, Field(pattern=r"^mongodb(\+srv)?://.+$")]
PageUrl: TypeAlias = Annotated[str, Field(pattern=r"^https?://[^/?#@\s]+(/[^#\s]*)?$")]
PageUrlOrNone: TypeAlias = Annotated[str, Field(pattern=r"^(https?://[^/?#@\s]+(/[^?#\s]*)?)?$")]
RatePerSecond: TypeAlias = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Weight: TypeAlias = Annotated[float, Field(ge=LIGHTEST, le=HEAVIEST, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DeliverySettings(_Section):
    """How long things may take, and what to do in doubt."""

    call_limit: HoldDuration = Field(alias="call_limit_ms")
    hold_margin: HoldDuration = Field(alias="hold_margin_ms")
    lease: HoldDuration = Field(alias="lease_ms")
    grace: Duration = Field(alias="grace_ms")
    default_ttl: SomeDuration = Field(alias="default_ttl_ms")
    max_in_doubt_resends: Count

    @property
    def hold(self) -> timedelta:
        """How long a declared attempt belongs to its worker."""
        return self.call_limit + self.hold_margin


class RetrySettings(_Section):
    """When to try again; an empty preset means the environment's."""

    preset: Literal[PresetName, ""]
    charge: Charge


class FairnessSettings(_Section):
    """How tenants take turns."""

    enable_round_robin: bool
    max_jobs_per_tenant_batch: SomeCount
    round_robin_base_priority: SomeCount
    priority_increment_per_round: Count
    max_round_robin_priority: SomeCount

    def as_value(self) -> Fairness:
        """The same, as stores and policies take it."""
        return Fairness(**self.model_dump())


class SendLimitSettings(_Section):
    """What all workers together may start; a count of 0 means no limit."""

    count: Count
    per: SomeDuration = Field(alias="per_ms")

    def as_value(self) -> SendLimit | None:
        """The same, as stores take it."""
        return SendLimit(self.count, self.per) if self.count else None


class WorkerSettings(_Section):
    """How much a worker does at once; 0 e-mail slots mean: as the provider allows."""

    email_slots: Count
    async_task_slots: SomeCount
    sync_task_threads: SomeCount

    def email_slots_for(self, *, network: bool) -> int:
        """The e-mail slots with a provider that is, or is not, across a network."""
        return self.email_slots or (_SLOTS_WITH_NETWORK if network else _SLOTS_WITHOUT)


class ApiSettings(_Section):
    """Where to listen, and to whom; port 0 lets the system choose one."""

    host: Text
    port: Annotated[int, Field(ge=0, le=65535)]
    trusted_proxies: Networks
    request_timeout: SomeDuration = Field(alias="request_timeout_ms")
    per_minute: Limit
    per_hour: Limit
    per_day: Limit

    @property
    def limits(self) -> ApiLimits:
        """What a tenant without limits of its own may hand in; 0 means any number."""
        return ApiLimits(self.per_minute or None, self.per_hour or None, self.per_day or None)


class RetentionSettings(_Section):
    """How long finished messages are kept; None is for good."""

    bodies: DurationOrNone = Field(alias="bodies_ms")
    history: DurationOrNone = Field(alias="history_ms")


class DeadLetterSettings(_Section):
    """How long dead letters are kept, how many, and where the rest goes."""

    ttl: SomeDuration = Field(alias="ttl_ms")
    max_entries: SomeCount
    export_folder: str


class SqliteSettings(_Section):
    """What is peculiar to the SQLite store."""

    min_free_bytes: Count
    busy_timeout: Duration = Field(alias="busy_timeout_ms")


class PostgresSettings(_Section):
    """What is peculiar to the Postgres store."""

    connections: SomeCount
    command_timeout: SomeDuration = Field(alias="command_timeout_ms")
    prepared_statements: bool


class SandboxSettings(_Section):
    """What is peculiar to the sandbox provider."""

    seed: int


class MetricsSettings(_Section):
    """Who can be told apart in the figures, and where they are shown; an empty host: on the API alone."""

    host: str
    port: Annotated[int, Field(ge=0, le=65535)]
    top_tenants: Annotated[int, Field(ge=0, le=1000)]


class SmtpSettings(_Section):
    """The relay that takes e-mail over, and how it is spoken to; empty texts mean: none, or as usual."""

    host: Text
    port: Annotated[int, Field(ge=1, le=65535)]
    tls: Literal["none", "starttls", "implicit"]
    ca_file: str
    username: str
    password: SecretReference
    default_from: AddressOrNone
    hello_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:\[\]-]*$")]
    connections: SomeCount
    messages_per_connection: SomeCount
    idle: SomeDuration = Field(alias="idle_ms")
    connect_limit: SomeDuration = Field(alias="connect_limit_ms")
    command_limit: SomeDuration = Field(alias="command_limit_ms")
    reply_limit: SomeDuration = Field(alias="reply_limit_ms")
    rate_per_second: RatePerSecond
    concurrency: Count


class ResendSettings(_Section):
    """The account at Resend that takes e-mail over."""

    api_key: SecretReference
    url: ApiUrl
    default_from: AddressOrNone
    connections: SomeCount
    rate_per_second: RatePerSecond
    concurrency: Count


class SesSettings(_Section):
    """The account and region of SES that takes e-mail over; empty texts mean: none, or as AWS' tools find it."""

    region: Annotated[str, Field(pattern=r"^[a-z0-9-]*$")]
    configuration_set: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,64}$")]
    default_from: AddressOrNone
    access_key_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]*$")]
    secret_access_key: SecretReference
    endpoint_url: Annotated[str, Field(pattern=r"^(https?://[^/?#@\s]+/?)?$")]
    connections: SomeCount
    connect_limit: SomeDuration = Field(alias="connect_limit_ms")
    rate_per_second: RatePerSecond
    concurrency: Count


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


class VerdictSettings(_Section):
    """A rule of the operator's own: what must hold of an answer, and what it then means."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")]
    provider: str = ""
    stage: Stage | None = None
    mx: str = ""
    code: str = ""
    enhanced: Annotated[str, Field(pattern=r"^([245]\.\d{1,3}\.\d{1,3})?$")] = ""
    text: Annotated[str, AfterValidator(_bounded)] = ""
    category: Category
    retryable: Annotated[bool, Field(strict=True)]
    scope: Scope

    @model_validator(mode="after")
    def _has_a_condition(self) -> "VerdictSettings":
        if not any((self.provider, self.stage, self.mx, self.code, self.enhanced, self.text)):
            raise ValueError("should have a condition: provider, stage, mx, code, enhanced or text")
        return self

    def as_value(self) -> OwnRule:
        """The same, as policies take it."""
        return OwnRule(
            **(self.model_dump() | {"text": bounded_pattern(self.text) if self.text else None})
        )


class FeedbackSettings(_Section):
    """Who may tell what became of mails; empty: nobody."""

    ses_topics: Topics
    sns_url: UrlOrNone
    resend_secret: SecretReference


class TicketSettings(_Section):
    """The ticket lane: where tickets come from, how they are worked on, and where dead ones go."""

    bootstrap_servers: Text
    kafka_file: str
    topic: TopicName
    group: Text
    dlq_enabled: bool
    dlq_topic: TopicName
    max_retries_before_dlq: Annotated[int, Field(ge=1, le=1000)]
    redis: QueueUrl
    concurrency: SomeCount
    time_limit: SomeDuration = Field(alias="time_limit_ms")
    window: SomeCount
    window_bytes: SomeCount
    commit_every: SomeDuration = Field(alias="commit_every_ms")
    drain: SomeDuration = Field(alias="drain_ms")
    mongo: MongoUrl
    mongo_database: Text
    mongo_collection: Text
    alertmanager: PageUrlOrNone
    metrics_host: Text
    metrics_port: Annotated[int, Field(ge=0, le=65535)]

    @property
    def page_address(self) -> "PageAddress":
        """Where the page for Prometheus is."""
        return PageAddress(self.metrics_host, self.metrics_port)


@value
class PageAddress:
    """Where a page is."""

    host: str
    port: int


class LogSettings(_Section):
    """What is written to the log."""

    level: LogLevel


@value
class Given:
    """One setting as it was written, and where."""

    key: str
    raw: object
    origin: str


class Settings(_Section):
    """All settings, checked."""

    store: StoreUrl
    queue: QueueUrl
    provider: Route
    environment: Environment
    verdicts: Annotated[tuple[VerdictSettings, ...], BeforeValidator(_written_as_tables)]
    delivery: DeliverySettings
    retry: RetrySettings
    fairness: FairnessSettings
    send_limit: SendLimitSettings
    tiers: dict[str, Weight]
    tenant_routes: dict[str, Route] = {}
    type_routes: dict[str, Route] = {}
    workers: WorkerSettings
    api: ApiSettings
    retention: RetentionSettings
    dead_letters: DeadLetterSettings
    sqlite: SqliteSettings
    postgres: PostgresSettings
    sandbox: SandboxSettings
    smtp: SmtpSettings
    resend: ResendSettings
    ses: SesSettings
    feedback: FeedbackSettings
    metrics: MetricsSettings
    tickets: TicketSettings
    ticket_urls: dict[str, PageUrl] = {}
    log: LogSettings
    _given: Mapping[str, Given] = PrivateAttr(default_factory=dict)

    @property
    def retry_preset(self) -> PresetName:
        """The preset that was named, else the environment's."""
        return self.retry.preset or default_preset(self.environment)

    @property
    def own_rules(self) -> tuple[OwnRule, ...]:
        """The operator's rules, as policies take them."""
        return tuple(each.as_value() for each in self.verdicts)

    def given(self) -> list[Given]:
        """Every setting as it was written and where, in the order of the default file."""
        return list(self._given.values())

    def origin(self, key: str) -> str:
        """Where the value of ``key`` came from; keys are those of the default file: ``delivery.lease_ms``."""
        return self._given[key].origin


def _keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{name}.")
        else:
            yield prefix + (field.alias or name)


FREE_TABLES = frozenset(
    {"tiers", "tenant_routes", "type_routes", "ticket_urls"}
)  # their keys are the user's own
KEYS = tuple(key for key in _keys(Settings) if key not in FREE_TABLES)


# --- reading them -----------------------------------------------------------------------------


def load(
    *,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Read all layers, the later ones winning; an unknown or wrong value raises `ConfigError`.

    ``file`` must exist, as must the one that CARTEIRO_CONFIG names; without either, carteiro.toml
    is read if it is there. ``overrides`` are the flags, by key; None is a flag not given.
    """
    environ = os.environ if environ is None else environ
    given: dict[str, Given] = {}
    for layer in (
        _flattened(tomllib.loads(default_text()), "default"),
        _from_file(file or environ.get(ENV_FILE)),
        _from_environ(environ),
        _from_flags(overrides or {}),
    ):
        given.update((each.key, each) for each in layer)
    return _checked(given)


def default_text() -> str:
    """The commented default file."""
    return resources.files("carteiro").joinpath("config.default.toml").read_text("utf-8")


def secret(reference: str, *, environ: Mapping[str, str] | None = None) -> str:
    """What ``env:NAME`` or ``file:PATH`` stands for, without the line's end; nothing stands for nothing."""
    environ = os.environ if environ is None else environ
    place, _, name = reference.partition(":")
    if not reference:
        return ""
    if place == "env":
        if not environ.get(name):
            text = f"{reference}: the environment variable is not set"
            raise ConfigError(text)
        return environ[name]
    try:
        return Path(name).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        text = f"{reference}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        raise ConfigError(text) from None


def env_name(key: str) -> str:
    """The environment variable of a setting."""
    return ENV_PREFIX + key.replace(".", "_").upper()


def _from_file(named: str | Path | None) -> Iterator[Given]:
    path = Path(named or FILE_NAME)
    if not named and not path.exists():
        return iter(())
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # bad TOML and bad UTF-8 alike
        raise ConfigError(f"{path}: is not a TOML file: {error}") from error
    return _flattened(table, str(path))


def _flattened(table: Mapping[str, Any], origin: str, prefix: str = "") -> Iterator[Given]:
    for name, raw in table.items():
        if isinstance(raw, dict):
            yield from _flattened(raw, origin, f"{prefix}{name}.")
        else:
            yield Given(_known(prefix + name, origin), raw, origin)


def _from_environ(environ: Mapping[str, str]) -> Iterator[Given]:
    for name in KNOWN_VARIABLES.keys() & environ.keys():
        yield Given(KNOWN_VARIABLES[name], environ[name], f"environment variable {name}")
    keys = {env_name(key): key for key in KEYS}
    for name, text in environ.items():
        if not name.startswith(ENV_PREFIX) or name == ENV_FILE or _is_service_link(name, text):
            continue
        key = keys.get(name) or _free_key(name)
        if key is None:
            _refuse_unknown(name, "environment", keys)
        yield Given(key, text, f"environment variable {name}")


def _is_service_link(name: str, text: str) -> bool:
    return bool(_SERVICE_LINK.search(name)) or text.startswith(_SERVICE_LINK_VALUES)


def _free_key(name: str) -> str | None:
    for table in FREE_TABLES:
        own = name.removeprefix(env_name(f"{table}."))
        if own not in {name, ""}:
            return f"{table}.{own.lower()}"
    return None


def _from_flags(overrides: Mapping[str, object]) -> Iterator[Given]:
    for key, raw in overrides.items():
        if raw is not None:
            yield Given(_known(key, "flag"), raw, "flag")


def _known(key: str, origin: str) -> str:
    table, _, own = key.partition(".")
    if key not in KEYS and (table not in FREE_TABLES or not own or "." in own):
        _refuse_unknown(key, origin, KEYS)
    return key


def _refuse_unknown(name: str, origin: str, known: Iterable[str]) -> NoReturn:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"{name} (from {origin}): no such setting{hint}")


# --- checking them ----------------------------------------------------------------------------


def _checked(given: Mapping[str, Given]) -> Settings:
    try:
        settings = Settings.model_validate(_nested(given))
    except ValidationError as error:
        raise ConfigError("\n".join(_complaints(error, given))) from None
    settings._given = given  # noqa: SLF001 - its maker may
    return settings


def _nested(given: Mapping[str, Given]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for each in given.values():
        section, _, name = each.key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = each.raw
    return tree


def _complaints(error: ValidationError, given: Mapping[str, Given]) -> Iterator[str]:
    """One line per setting: which, what was written, where, and what is allowed."""
    for each in error.errors():
        wrong, inside = _found(given, [str(part) for part in each["loc"]], each["input"])
        allowed = each["msg"].removeprefix("Value error, ").removeprefix("Input ")
        written = "(not shown)" if wrong.key in _SECRETS else repr(without_password(wrong.raw))
        yield f"{wrong.key}{inside} = {written} (from {wrong.origin}): {allowed}"


def _found(given: Mapping[str, Given], parts: list[str], written: object) -> tuple[Given, str]:
    """The setting that a complaint is about, and where inside it; lists count from 1, as people do."""
    whole = given.get(".".join(parts))
    if whole is not None:
        return whole, ""
    key, number, *rest = parts
    inside = f"[{int(number) + 1}]{''.join(f'.{part}' for part in rest)}"
    return Given(key, written, given[key].origin), inside
