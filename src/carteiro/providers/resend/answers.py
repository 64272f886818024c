"""What Resend's answers mean.

A refusal (4xx) is proof that nothing was handed over. An error of the server is not: it may come
after the mail was taken, so that it is a doubt, which a replay of the same key resolves.
"""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import httpx
import orjson

from carteiro.model import Category, Deferred, Failure, Outcome, Rejected, Scope, Taken, Unknown
from carteiro.policy import classify
from carteiro.ports.provider import Handover
from carteiro.providers.resend.pace import asked_wait

NAME = "resend"
_IN_PROGRESS = "concurrent_idempotent_requests"
_SOON = timedelta(seconds=2)  # a call of the same key is under way: it needs a moment
_MAY_ONLY_SEND = "restricted_api_key"  # said of a key that is sound

NO_SENDER = Failure(
    code="SENDER_MISSING",
    category=Category.CONFIGURATION_ERROR,
    retryable=False,
    scope=Scope.SENDER,
    reason="The e-mail has no from address: give it one, or set resend.default_from",
    rule="resend.sender_missing",
)


def outcome_of(answer: httpx.Response) -> Outcome:
    """What came of a mail."""
    told = _document(answer)
    if answer.is_success:
        identity = str(told.get("id") or "")
        return Taken(identity) if identity else Unknown(_no_id(answer))
    failure = _failure(answer, told)
    if answer.is_server_error or answer.status_code == HTTPStatus.REQUEST_TIMEOUT:
        return Unknown(failure)
    if not failure.retryable:
        return Rejected(failure)
    wait = _SOON if told.get("name") == _IN_PROGRESS else asked_wait(answer.headers)
    return Deferred(failure, wait)


def unanswered(error: httpx.RequestError, handover: Handover) -> Outcome:
    """What came of a call that broke: before the body was begun nothing was handed over."""
    failure = classify.network(f"{type(error).__name__}: {error}")
    return Unknown(failure) if handover.begun else Deferred(failure)


def held_back(wait: timedelta) -> Failure:
    """Why a call is not made yet."""
    text = f"Resend asked to wait for {wait.total_seconds():g} s"
    return classify.classify_resend("rate_limit_exceeded", text, HTTPStatus.TOO_MANY_REQUESTS.value)


def fault_of(answer: httpx.Response) -> str | None:
    """What an answer says against using the key, if anything."""
    told = _document(answer)
    if answer.is_success or told.get("name") == _MAY_ONLY_SEND:
        return None
    return _failure(answer, told).reason


def _failure(answer: httpx.Response, told: dict[str, Any]) -> Failure:
    status = answer.status_code
    message = str(told.get("message") or "") or f"HTTP {status}: {answer.text}"
    return classify.classify_resend(str(told.get("name") or ""), message, status)


def _no_id(answer: httpx.Response) -> Failure:
    return classify.network(f"HTTP {answer.status_code} without an id")


def _document(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer; empty if it is none, as from a proxy."""
    try:
        told = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}
