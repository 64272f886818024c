"""Idempotency keys as they are given: in a header, or with an item of a batch."""

from collections.abc import Mapping
from typing import Any

from carteiro.errors import FieldError, InvalidMessage
from carteiro.policy.names import KEY_RULE, is_key

IDEMPOTENCY_KEY: Mapping[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "What you call this request, so that asking twice does it once; kept for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[ -~]+$"},
}

REPLAYED = "Idempotent-Replayed"  # in the answer to what was accepted before


def key_in(headers: Mapping[str, str]) -> str | None:
    """The key of a request, if it has one; `InvalidMessage` if it cannot be one."""
    return judged_key(headers.get("idempotency-key"), "Idempotency-Key")


def judged_key(given: object, field: str) -> str | None:
    """The key that was given, if one was; `InvalidMessage` if it cannot be one."""
    if given is None:
        return None
    if not is_key(given):
        raise InvalidMessage([FieldError(field, KEY_RULE)])
    return given
