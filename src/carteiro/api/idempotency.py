"""Idempotency keys: in a header, or in an item of a batch."""

from collections.abc import Mapping
from typing import Any

from carteiro.errors import FieldError, InvalidMessage
from carteiro.policy.names import KEY_PATTERN, KEY_RULE, is_key

IDEMPOTENCY_KEY: Mapping[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Your name of this request: a repetition within a day is not executed again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": KEY_PATTERN},
}

REPLAYED = "Idempotent-Replayed"  # a header of the answer to a repeated request


def key_in(headers: Mapping[str, str]) -> str | None:
    """The key of a request, if it has one; `InvalidMessage` if it is not valid."""
    return judged_key(headers.get("idempotency-key"), "Idempotency-Key")


def judged_key(given: object, field: str) -> str | None:
    """The given key, if any; `InvalidMessage` if it is not valid."""
    if given is None:
        return None
    if not is_key(given):
        raise InvalidMessage([FieldError(field, KEY_RULE)])
    return given
