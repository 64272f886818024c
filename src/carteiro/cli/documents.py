"""Values as JSON documents: camelCase, moments in ISO 8601 with milliseconds and Z, durations in ms."""

from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, get_args

from pydantic.alias_generators import to_camel

from carteiro.model import MILLISECOND, Recipient, Tenant
from carteiro.views.moments import in_iso

_NAMES = {"tenant": "companyId"}  # as in the HTTP API and in SQL
_ID_NAMES = {Tenant: "companyId", Recipient: "recipientId"}


def document_of(value: object, **changes: object) -> dict[str, Any]:
    """A value's document, field by field; ``changes`` are added, or replace fields."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is not a value of the model")
    own = {
        _name(type(value), field.name, field.type): getattr(value, field.name)
        for field in fields(value)
    }
    return {name: plain(each) for name, each in (own | changes).items()}


def plain(value: object) -> Any:  # noqa: ANN401, PLR0911 - any JSON, one return per type
    """A value as JSON."""
    match value:
        case datetime():
            return in_iso(value)
        case timedelta():
            return value // MILLISECOND
        case Enum():
            return value.value
        case tuple() | list():
            return [plain(each) for each in value]
        case dict():
            return {str(plain(key)): plain(each) for key, each in value.items()}
        case _ if is_dataclass(value):
            return document_of(value)
        case _:
            return value


def _name(owner: type, field: str, holds: object) -> str:
    if field == "id":
        return _ID_NAMES.get(owner, "id")
    is_duration = holds is timedelta or timedelta in get_args(holds)
    return _NAMES.get(field) or to_camel(f"{field}_ms" if is_duration else field)
