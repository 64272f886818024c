"""The meaning of Resend's answers.

A refusal (4xx) is proof that nothing was handed over. An error of the server is not: it may come
after the mail was taken, so that it is a doubt, which a replay of the same key resolves.
"""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import httpx
import orjson

from carteiro.model import Deferred, Failure, Outcome, Rejected, Taken, Unknown
from carteiro.policy import classify
from carteiro.policy.masking import masked_text
from carteiro.ports.provider import Fault, Handover, fault_of
from carteiro.providers.resend.pace import asked_wait
from carteiro.providers.resend.rules import classify_resend

_IN_PROGRESS = "concurrent_idempotent_requests"
_SOON = timedelta(seconds=2)  # a call with the same key is in flight
_VERIFIED, _WAVERING = "verified", "temporary_failure"  # the latter still sends, for a while
_TEST_DOMAIN = "resend.dev"  # everybody's, for mail to oneself
_MAY_ONLY_SEND = "restricted_api_key"  # said of a key that is sound


def outcome_of(answer: httpx.Response) -> Outcome:
    """The outcome of a mail."""
    told = _document(answer)
    if answer.is_success:
        identity = str(told.get("id") or "")
        no_id = f"HTTP {answer.status_code} without an id"
        return Taken(identity) if identity else Unknown(classify.network(no_id))
    failure = _failure(answer, told)
    if answer.is_server_error or answer.status_code == HTTPStatus.REQUEST_TIMEOUT:
        return Unknown(failure)
    if not failure.retryable:
        return Rejected(failure)
    wait = _SOON if told.get("name") == _IN_PROGRESS else asked_wait(answer.headers)
    return Deferred(failure, wait)


def unanswered(error: httpx.RequestError, handover: Handover) -> Outcome:
    """The outcome of a broken call: before the body was begun, nothing was handed over."""
    failure = unreached(error)
    return Unknown(failure) if handover.begun else Deferred(failure)


def unreached(error: httpx.RequestError) -> Failure:
    """The failure of a call without an answer."""
    return classify.network(f"{type(error).__name__}: {masked_text(str(error))}")


def held_back(wait: timedelta) -> Failure:
    """The failure of a call that the rate limit delays."""
    text = f"Resend asked to wait for {wait.total_seconds():g} s"
    return classify_resend("rate_limit_exceeded", text, HTTPStatus.TOO_MANY_REQUESTS.value)


def faults(answer: httpx.Response, sender: str) -> list[Fault]:
    """Problems of the key or the sender's address, from the list of the account's domains."""
    told = _document(answer)
    if told.get("name") == _MAY_ONLY_SEND:
        return []
    if not answer.is_success:
        return [fault_of(_failure(answer, told), "check the key that resend.api_key refers to")]
    domain = sender.rpartition("@")[2].lower()
    if not domain or domain == _TEST_DOMAIN or told.get("has_more"):
        return []
    listed = [each for each in told.get("data") or () if isinstance(each, dict)]
    status = {str(each.get("name")).lower(): each.get("status") for each in listed}.get(domain)
    if status == _VERIFIED:
        return []
    text = f"the domain {domain} of resend.default_from is {status or 'not known'} at Resend"
    return [Fault(text, "verify it there", is_deadly=status != _WAVERING)]


def _failure(answer: httpx.Response, told: dict[str, Any]) -> Failure:
    status = answer.status_code
    message = str(told.get("message") or "") or f"HTTP {status}: {answer.text}"
    return classify_resend(str(told.get("name") or ""), message, status)


def _document(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer; empty if it is none, as from a proxy."""
    try:
        told = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}
