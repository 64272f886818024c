"""Answers as people hand them in, and as the ledger keeps them, judged as the worker would judge them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from carteiro.model import Failure, value
from carteiro.policy import classify
from carteiro.policy.classify import classify_resend, classify_ses, classify_smtp, classify_text
from carteiro.policy.own_rules import stage_of
from carteiro.policy.rules import resend, ses, silence
from carteiro.policy.rules.phrases import Said
from carteiro.policy.stage import Stage

SMTP, SES, RESEND = "smtp", "ses", "resend"

_TOLD = re.compile(
    r"\s*(?P<http>HTTP(?:/[\d.]+)?[\s:]*)?(?:(?P<status>[1-5]\d\d)\b[\s:,-]*)?"
    r"(?P<rest>(?P<name>[A-Za-z][\w.#]*)?(?P<colon>\s*(?:[:,]|$))?.*)",
    re.DOTALL | re.IGNORECASE,
)
# What libraries of Python make of a reply: (550, b'5.1.1 no such user'), also among others.
_PACKED = re.compile(
    r"""\(\s*(?P<code>[245]\d\d),\s*b?(?P<quote>['"])(?P<words>(?:(?!(?P=quote)).)*)(?P=quote)\s*[,)]"""
)
_BEHIND_A_NAME = re.compile(r"\s*[A-Za-z][\w.]*:\s+(?P<rest>.+)", re.DOTALL)
_SUCCESS = re.compile(
    r"\s*(?:HTTP(?:/[\d.]+)?[\s:]*)?(?:2\d\d|354)(?!\w|\.\d)(?![\s-]*[45]\.\d)", re.IGNORECASE
)
_STATUS_ALONE = re.compile(r"\s*[1-5]\d\d[\s:,-]*")
_PAIR = re.compile(r"""(?<![A-Za-z_$])([A-Za-z_$]{1,40})['"]?\s*:\s*(?:(['"])(.*?)\2|(\d+))""")
_LONGEST_DOCUMENT = 10_000
_JUDGED = (f"{SMTP}.", f"{SES}.", f"{RESEND}.", "own.", "unknown")
_SES_NAMES = ses.NAMES | ses.COMMON_NAMES


@value
class _Told:
    """An answer taken apart: the name of an error and a status of HTTP, as far as it has them."""

    message: str
    name: str = ""
    status: int | None = None
    is_http: bool = False  # beyond doubt: no reply of SMTP looks like it


def judge_answer(
    text: str, *, provider: str = "", stage: Stage | None = None, mx: str = ""
) -> Failure:
    """Judge what somebody was told, or found in a log; without a provider by what it looks like.

    That may be a reply of SMTP, a name and a message, the body or the status of an answer over HTTP,
    or what a library says when there was no answer.
    """
    plain = _unpacked(text)
    found = _decided(plain, provider, stage, mx)
    if found.rule in _UNDECIDED and (behind := _BEHIND_A_NAME.match(plain)):
        again = _decided(behind["rest"], provider, stage, mx)
        found = found if again.rule in _UNDECIDED else again
    return found if found.rule not in _UNDECIDED else _of_silence(text, provider) or found


def is_success(text: str) -> bool:
    """Whether it says that all went well, or that one may go on: then there is nothing to judge."""
    return _SUCCESS.match(text) is not None


_UNDECIDED = frozenset({"unknown", "ses.unknown", "resend.unknown"})


def _decided(text: str, provider: str, stage: Stage | None, mx: str) -> Failure:
    told = _document(text) or _taken_apart(text)
    if provider == SMTP or stage:
        return _of_relay(text, stage, mx)
    if provider == RESEND or (not provider and _is_resends(told)):
        return _of_resend(told)
    if provider == SES or (not provider and told.is_http and _is_sess(told.name)):
        return _of_ses(told, text)
    return _by_its_looks(told, text, mx)


def _of_relay(text: str, stage: Stage | None, mx: str) -> Failure:
    found = classify_smtp(text, stage=stage, mx=mx)
    return found if found.rule != "unknown" else classify_text(text, stage=stage, mx=mx)


def _of_resend(told: _Told) -> Failure:
    return classify_resend(told.name, told.message, told.status)


def _of_ses(told: _Told, text: str) -> Failure:
    if told.name:
        return classify_ses(told.name, told.message)
    found = classify.unknown(text) if told.is_http else classify_text(text)
    if found.rule.startswith(f"{SES}.") or told.status is None:
        return found
    return classify_ses(str(told.status), told.message)


def _by_its_looks(told: _Told, text: str, mx: str) -> Failure:
    found = classify.unknown(text) if told.is_http else classify_text(text, mx=mx)
    if found.rule != "unknown":
        return found
    if told.status is None and _is_sess(told.name):
        return classify_ses(told.name, told.message)
    return found if told.status is None else _of_http(told.status, text)


def _of_http(status: int, text: str) -> Failure:
    """A status without a name, of nobody knows whom: judged as a service's over HTTP."""
    found = classify_resend("", text, status)
    return replace(found, code=f"HTTP_{status}", rule=f"http.status.{status}")


def _of_silence(text: str, provider: str) -> Failure | None:
    """What libraries say when nobody answered, or nobody whom we trust."""
    match silence.WORDS.first(Said(text)):
        case silence.Silence.TIMEOUT:
            late = classify.timeout(provider or SMTP)
            return replace(late, reason=classify.one_line(text))
        case silence.Silence.UNTRUSTED:
            return classify.unfit(provider or SMTP, "TLS_ERROR", text)
        case silence.Silence.UNREACHED:
            return classify.network(text)
        case _:
            return None


# --- taking apart -----------------------------------------------------------------------------


def _taken_apart(text: str) -> _Told:
    """A status and a name where a text begins with them; a word is a name if it is known or a colon follows."""
    found = _TOLD.fullmatch(text)
    if found is None:  # pragma: no cover - every part of it may be missing
        return _Told(text)
    name, rest = found["name"] or "", found["rest"] or ""
    is_name = bool(name) and (found["colon"] is not None or "_" in name or _is_sess(name))
    status = int(found["status"]) if found["status"] else None
    message = rest[len(name) :].lstrip(" :,") if is_name else rest
    is_http = bool(found["http"]) and status is not None
    return _Told(message or text, name if is_name else "", status, is_http)


def _unpacked(text: str) -> str:
    """The reply that a library wrapped, as it was said; any other text as it is."""
    found = _PACKED.search(text[:_LONGEST_DOCUMENT])
    if found is None:
        return text
    return f"{found['code']} {found['words']}".replace("\\r", "").replace("\\n", "\n")


def _document(text: str) -> _Told | None:
    """The name, message and status of an object that the text is, or ends in; None: there is none.

    What stands before it must not be an answer by itself: servers of mail quote objects, too.
    """
    start = text.find("{")
    if start < 0 or len(text) > _LONGEST_DOCUMENT:
        return None
    before = text[:start]
    if not _STATUS_ALONE.fullmatch(before) and classify_text(before).rule != "unknown":
        return None
    given = _object(text[start:])
    parts = list(_nested(given))
    name = _first(parts, "name", "__type", "Code", "code")
    status = _first(parts, "statusCode", "httpStatusCode", "HTTPStatusCode", "status")
    number = int(status) if status.isdecimal() and len(status) == len("500") else None
    if not name and number is None:
        return None
    return _Told(_first(parts, "message", "Message") or text, name, number, is_http=True)


def _object(text: str) -> dict[str, Any]:
    """The JSON object that a text begins with, else the pairs of one as Python or JavaScript print it."""
    try:
        given, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {key: words or number for key, _, words, number in _PAIR.findall(text)}
    return dict(given)


def _nested(given: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The object, and those directly in it: services wrap what they say."""
    yield given
    yield from (each for each in given.values() if isinstance(each, dict))


def _first(parts: list[Mapping[str, Any]], *keys: str) -> str:
    for key in keys:
        for part in parts:
            if isinstance(part.get(key), str | int):
                return str(part[key])
    return ""


def _is_sess(name: str) -> bool:
    return re.split(r"[.#]", name)[-1].removesuffix("Exception") in _SES_NAMES


def _is_resends(told: _Told) -> bool:
    return "_" in told.name and (told.name in resend.NAMES or told.is_http)


# --- from the ledger --------------------------------------------------------------------------


def judged_again(failure: Failure, *, mx: str = "") -> Failure | None:
    """A stored failure as the rules of today judge it; None if no provider's answer was behind it."""
    if not failure.rule.startswith(_JUDGED):
        return None
    match provider_of(failure):
        case "ses":
            return classify_ses(failure.original_code or "", failure.reason)
        case "resend":
            return _resend_again(failure, failure.original_code or "")
        case _:
            return classify_smtp(failure.reason, stage=stage_of(failure), mx=mx)


def provider_of(failure: Failure) -> str:
    """Whose answer a stored failure was."""
    if failure.code.startswith("RESEND_"):
        return RESEND
    is_ses = failure.code.startswith("SES_") or failure.rule.startswith(f"{SES}.")
    return SES if is_ses else SMTP


def _resend_again(failure: Failure, name: str) -> Failure:
    """Its status is not stored, but the rule says what it made of it."""
    *_, last = failure.rule.split(".")
    status = resend.FORBIDDEN if last == "forbidden" else int(last) if last.isdecimal() else None
    return classify_resend(name, failure.reason, status)
