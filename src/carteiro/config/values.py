"""Types of single settings: each is checked when it is read, and its error names the allowed values."""

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import pydantic
from pydantic import Field
from pydantic_core import PydanticKnownError

from carteiro.config.providers import answers, is_remote, specs
from carteiro.errors import ConfigError
from carteiro.model import HEAVIEST, LARGEST_BATCH, LIGHTEST
from carteiro.policy.addresses import judge_address
from carteiro.policy.lifecycle import LONGEST_HOLD
from carteiro.policy.masking import masked_servers, masked_url
from carteiro.policy.unsubscribe import LONGEST_URL

_SHORTEST_AUDIT = timedelta(days=1)
_LONGEST_RETRY_WAIT = timedelta(days=30)

LogLevel: TypeAlias = Literal["debug", "info", "warn", "error"]

_MEMORY = "memory://"
_PORT = r"(:(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|\d{1,4}))?"
_PLACE = rf"([^/?#@,:\[\]]+|\[[^/?#@,]+\]){_PORT}"  # host, or IPv6 address in brackets, and port
_STORE = re.compile(
    r"sqlite:///[^\0]+"
    rf"|postgres(ql)?://([^/?#@\s]*@)?({_PLACE}(,{_PLACE})*)?(/[^?#\s]*)?(\?[^=&#\s]+=[^&#\s]*(&[^=&#\s]+=[^&#\s]*)*)?",
    re.DOTALL | re.ASCII,
)
_QUEUE = re.compile(
    rf"(rediss?|valkeys?)://([^/?#]*@)?{_PLACE}(/\d*)?(\?.*)?"
    rf"|redis\+sentinel://([^/?#]*@)?{_PLACE}(,{_PLACE})*/[^/?#]+(/\d*)?(\?.*)?"
    r"|unix://.+",
    re.DOTALL | re.ASCII,
)

_SERVERS = ("postgresql://", "postgres://")
_ESCAPE = (
    "; in a password write / @ : # ? and % as %2F %40 %3A %23 %3F and %25; a port is at most 65535"
)

_API_URL = re.compile(
    rf"https://{_PLACE}(/[^?#\s]*)?|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^?#\s]*)?",
    re.ASCII,
)
_PUBLIC_URL = re.compile(r"https://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?", re.ASCII)
_ERROR_NAME = re.compile(r"[^\W\d]\w*")  # as Python and HTTP_503 have it
_SECRET_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")


def _number(raw: object, kind: object = float) -> object:
    """Reject true and false as numbers: Python would take them for 1 and 0."""
    if isinstance(raw, bool):
        raise PydanticKnownError("int_type" if kind is int else "float_type")
    return raw


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


def _audit_retention(raw: object) -> timedelta | None:
    span = _duration(raw)
    if timedelta(0) < span < _SHORTEST_AUDIT:
        least = _SHORTEST_AUDIT // timedelta(milliseconds=1)
        raise ValueError(f"should be at least {least} milliseconds, 1 day; or 0, forever")
    return span or None


def _retry_wait(raw: object) -> timedelta:
    span = _some_duration(raw)
    if span > _LONGEST_RETRY_WAIT:
        most = _LONGEST_RETRY_WAIT // timedelta(milliseconds=1)
        raise ValueError(f"should be at most {most} milliseconds, 30 days")
    return span


def _store(raw: str) -> str:
    if raw != _MEMORY and not _STORE.fullmatch(raw):
        text = "should be sqlite:///FILE, postgresql://HOST/DATABASE or memory://"
        raise ValueError(text + (_ESCAPE if raw.startswith(_SERVERS) else ""))
    return raw


def _queue(raw: str) -> str:
    if raw and not _QUEUE.fullmatch(raw):
        text = (
            "should be redis://HOST:PORT/NUMBER, redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/NUMBER,"
            " or empty; NUMBER, a database, is 0 or more"
        )
        raise ValueError(text + (_ESCAPE if "@" in raw else ""))
    return raw


def provider_names(raw: str) -> tuple[str, ...]:
    """The providers of a route, in order."""
    return tuple(name.strip() for name in raw.split(","))


def _route(raw: str) -> str:
    names = provider_names(raw)
    if not all(map(_is_provider, names)):
        regional = [f" or {each.name}:REGION" for each in specs().values() if each.region]
        raise ValueError(
            f"should be {', '.join(specs())}{''.join(regional)}, or several of them separated by commas"
        )
    if len(names) > 1 and not all(map(is_remote, names)):
        local = " or ".join(name for name in specs() if not is_remote(name))
        raise ValueError(
            f"should not have {local} in a chain: they would take what others cannot, and deliver it to nobody"
        )
    if len(set(names)) < len(names):
        raise ValueError("should not name a provider twice")
    return ", ".join(names)


def _is_provider(name: str) -> bool:
    type_, colon, region = name.partition(":")
    spec = specs().get(type_)
    return spec is not None and (not colon or bool(re.fullmatch(spec.region, region, re.ASCII)))


def _answering(raw: str) -> str:
    """Providers that a rule can be about; empty means all."""
    if raw and raw not in answers():
        raise ValueError(f"should be one of {', '.join(answers())}, without a region")
    return raw


def shaped(pattern: str, should_be: str) -> pydantic.AfterValidator:
    """A check of a whole text; its error names the allowed form in words, not as a pattern."""
    shape = re.compile(pattern, re.ASCII)

    def check(raw: str) -> str:
        if not shape.fullmatch(raw):
            raise ValueError(f"should be {should_be}")
        return raw

    return pydantic.AfterValidator(check)


_ADDRESSES = frozenset({"store", "queue", "tickets.bootstrap_servers"})


class Hidden:
    """Marks a setting whose value no error repeats: a secret written by mistake must not appear in a log."""


def shown_setting(key: str, raw: object) -> object:
    """A setting without secrets: an address may have a password in it."""
    if isinstance(raw, dict):  # a table such as ticket_urls
        return {name: shown_setting(key, each) for name, each in raw.items()}
    if not isinstance(raw, str):
        return raw
    if "://" in raw:
        return masked_url(raw)
    user, _, _ = raw.rpartition("@")
    # No e-mail has a colon before its @.
    is_address = key in _ADDRESSES or key.endswith(".host") or ":" in user
    return masked_servers(raw) if is_address else raw


def _networks(raw: str) -> str:
    try:
        for name in raw.split():
            ip_network(name)
    except ValueError:
        raise ValueError("should be networks or addresses, separated by spaces") from None
    return raw


def _error_names(raw: str) -> str:
    if not all(_ERROR_NAME.fullmatch(name) for name in raw.split()):
        raise ValueError(
            "should be a list of names of errors, separated by spaces and not by commas"
        )
    return raw


def _secret_reference(raw: object) -> str:
    """Reject the secret itself: settings are shown, and appear in messages."""
    if raw and not is_reference(str(raw)):
        raise ValueError("should be env:NAME or file:PATH, never the secret itself")
    return str(raw)


def is_reference(text: str) -> bool:
    """True for a reference to a secret."""
    return bool(_SECRET_REFERENCE.fullmatch(text))


def secret(reference: str, *, environ: Mapping[str, str] | None = None) -> str:
    """Return the secret behind ``env:NAME`` or ``file:PATH``, without the line end; empty for an empty reference."""
    environ = os.environ if environ is None else environ
    place, _, name = reference.partition(":")
    if not reference:
        return ""
    if place == "env":
        if not environ.get(name):
            raise ConfigError(f"{reference}: the environment variable is not set")
        return environ[name]
    try:
        return Path(name).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        text = f"{reference}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        raise ConfigError(text) from None


def _api_url(raw: str) -> str:
    if not _API_URL.fullmatch(raw):
        raise ValueError("should be https://HOST, or http:// on this machine")
    return raw.rstrip("/")


def _public_url(raw: str) -> str:
    if raw and (len(raw) > LONGEST_URL or not _PUBLIC_URL.fullmatch(raw)):
        most = f"of at most {LONGEST_URL} characters"
        raise ValueError(f"should be https://HOST or https://HOST/PATH, {most}, or empty")
    return raw.rstrip("/")


def _address_or_none(raw: object) -> str:
    normal = judge_address(str(raw)) if raw else ""
    if normal is None:
        raise ValueError("should be an e-mail address")
    return normal


HeaderNames: TypeAlias = Annotated[
    str,
    shaped(
        r"(\s*[Xx]-[A-Za-z0-9_-]{1,74})*\s*",
        "names of headers that begin with X-, separated by spaces",
    ),
]
Duration: TypeAlias = Annotated[timedelta, pydantic.BeforeValidator(_duration)]
SomeDuration: TypeAlias = Annotated[timedelta, pydantic.BeforeValidator(_some_duration)]
# Two of them make a hold: a longer one would look like a clock that stepped back.
HoldDuration: TypeAlias = Annotated[
    timedelta, pydantic.BeforeValidator(_some_duration), Field(le=LONGEST_HOLD / 2)
]
RetryWait: TypeAlias = Annotated[timedelta, pydantic.BeforeValidator(_retry_wait)]
DurationOrNone: TypeAlias = Annotated[
    timedelta | None, pydantic.BeforeValidator(lambda raw: _duration(raw) or None)
]
AuditRetention: TypeAlias = Annotated[timedelta | None, pydantic.BeforeValidator(_audit_retention)]
Text: TypeAlias = Annotated[str, shaped(r"(?s:.+)", "a text that is not empty")]
StoreUrl: TypeAlias = Annotated[str, pydantic.AfterValidator(_store)]
QueueUrl: TypeAlias = Annotated[str, pydantic.AfterValidator(_queue)]
Networks: TypeAlias = Annotated[str, pydantic.AfterValidator(_networks)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Limit: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000_000)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
SomeCount: TypeAlias = Annotated[int, Field(ge=1)]
Batch: TypeAlias = Annotated[int, Field(ge=1, le=LARGEST_BATCH)]
# Providers get the secret in its place, which must not appear in a log.
SecretReference: TypeAlias = Annotated[
    str, pydantic.BeforeValidator(_secret_reference), Hidden(), Field(repr=False)
]
Route: TypeAlias = Annotated[str, pydantic.AfterValidator(_route)]
AnsweringProvider: TypeAlias = Annotated[str, pydantic.AfterValidator(_answering)]
AddressOrNone: TypeAlias = Annotated[str, pydantic.BeforeValidator(_address_or_none)]
ApiUrl: TypeAlias = Annotated[str, pydantic.AfterValidator(_api_url)]
PublicUrlOrNone: TypeAlias = Annotated[str, pydantic.AfterValidator(_public_url)]
UrlOrNone: TypeAlias = Annotated[str, pydantic.AfterValidator(lambda raw: raw and _api_url(raw))]
ErrorNames: TypeAlias = Annotated[str, pydantic.AfterValidator(_error_names)]
RatePerSecond: TypeAlias = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Weight: TypeAlias = Annotated[
    float, Field(ge=LIGHTEST, le=HEAVIEST, allow_inf_nan=False), pydantic.BeforeValidator(_number)
]
Servers: TypeAlias = Annotated[str, shaped(r"(?s:.+)", "HOST:PORT, or several separated by commas")]
TopicName: TypeAlias = Annotated[
    str,
    shaped(r"[A-Za-z0-9._-]{1,249}", "the name of a topic: 1 to 249 letters, digits, . - and _"),
]
MongoUrl: TypeAlias = Annotated[
    str, shaped(r"mongodb(\+srv)?://.+", "mongodb://HOST:PORT or mongodb+srv://HOST")
]
PageUrl: TypeAlias = Annotated[
    str,
    shaped(
        r"https?://[^/?#@\s]+(/[^#\s]*)?",
        "http://HOST:PORT/PATH or https://HOST/PATH, without a user and a password",
    ),
]
PageUrlOrNone: TypeAlias = Annotated[
    str,
    shaped(
        r"(https?://[^/?#@\s]+(/[^?#\s]*)?)?",
        "http://HOST:PORT or https://HOST, without a user and a password, or empty",
    ),
]


class Section(pydantic.BaseModel):
    """A part of the settings: checked and immutable."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _is_number(cls, raw: object, info: pydantic.ValidationInfo) -> object:
        kind = cls.model_fields[info.field_name or ""].annotation
        return _number(raw, kind) if kind in {int, float} else raw
