"""Answers as people hand them in, and as the ledger keeps them, judged as the worker would judge them."""

import json
import re
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from carteiro.config.providers import answers, is_remote
from carteiro.model import Failure
from carteiro.policy import classify
from carteiro.policy.own_rules import stage_of
from carteiro.policy.rules import silence
from carteiro.policy.rules.answers import Answers, Parsed
from carteiro.policy.rules.phrases import Said
from carteiro.policy.stage import Stage

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
_STATUSES = {"forbidden": HTTPStatus.FORBIDDEN.value}  # as some rules end


def judge_answer(
    text: str, *, provider: str = "", stage: Stage | None = None, mx: str = ""
) -> Failure:
    """Judge an answer as in a log; without a provider, by its form.

    It may be a reply of SMTP, a name and a message, the body or the status of an answer over HTTP,
    or the text of a library when there was no answer.
    """
    plain = _unpacked(text)
    found = _decided(plain, provider, stage, mx)
    if _is_open(found) and (behind := _BEHIND_A_NAME.match(plain)):
        again = _decided(behind["rest"], provider, stage, mx)
        found = found if _is_open(again) else again
    return (_of_silence(text, provider or relay()) or found) if _is_open(found) else found


def is_success(text: str) -> bool:
    """True if it reports success or progress: there is no failure to judge."""
    return _SUCCESS.match(text) is not None


def relay() -> str:
    """The provider of an answer without a name: an SMTP provider."""
    return next(name for name in answers() if answers()[name].is_smtp and is_remote(name))


def _is_open(failure: Failure) -> bool:
    return failure.rule in {"unknown", *(f"{name}.unknown" for name in answers())}


def _decided(text: str, provider: str, stage: Stage | None, mx: str) -> Failure:
    parsed = _document(text) or _taken_apart(text)
    own = answers().get(provider) or next((a for a in answers().values() if a.is_own(parsed)), None)
    if stage or (provider and own and own.is_smtp):
        found = classify.classify_smtp(text, stage=stage, mx=mx)
        return found if found.rule != "unknown" else _of_text(text, stage, mx)
    judged = own.judge(parsed) if own else None
    return judged or _by_its_looks(parsed, mx, is_known=bool(own))


def _by_its_looks(parsed: Parsed, mx: str, *, is_known: bool) -> Failure:
    found = classify.unknown(parsed.text) if parsed.is_http else _of_text(parsed.text, None, mx)
    if is_known or found.rule != "unknown":
        return found
    if parsed.status is not None:
        return classify.classify_http(parsed.status, parsed.text)
    owner = _owner_of(parsed.name)
    return (owner and owner.judge(parsed)) or found


def _of_text(text: str, stage: Stage | None = None, mx: str = "") -> Failure:
    for each in answers().values():
        if found := each.finds(text):
            return found
    return classify.classify_text(text, stage=stage, mx=mx)


def _owner_of(name: str) -> Answers | None:
    """The provider that uses this error name."""
    return next(
        (each for each in answers().values() if classify.bare_name(name) in each.names), None
    )


def _of_silence(text: str, provider: str) -> Failure | None:
    """Texts of libraries without an answer, or without a trusted server."""
    match silence.WORDS.first(Said(text)):
        case silence.Silence.TIMEOUT:
            return replace(classify.timeout(provider), reason=classify.one_line(text))
        case silence.Silence.UNTRUSTED:
            return classify.unfit(provider, "TLS_ERROR", text)
        case silence.Silence.UNREACHED:
            return classify.network(text)
        case _:
            return None


# --- taking apart -----------------------------------------------------------------------------


def _taken_apart(text: str) -> Parsed:
    """A status and a name where a text begins with them; a word is a name if it is known or a colon follows."""
    found = _TOLD.fullmatch(text)
    if found is None:  # pragma: no cover - every part of it may be missing
        return Parsed(text, text)
    name, rest = found["name"] or "", found["rest"] or ""
    is_name = bool(name) and (found["colon"] is not None or "_" in name or bool(_owner_of(name)))
    status = int(found["status"]) if found["status"] else None
    message = rest[len(name) :].lstrip(" :,") if is_name else rest
    is_http = bool(found["http"]) and status is not None
    return Parsed(text, message or text, name if is_name else "", status, is_http)


def _unpacked(text: str) -> str:
    """The reply that a library wrapped, as it was said; any other text as it is."""
    found = _PACKED.search(text[:_LONGEST_DOCUMENT])
    if found is None:
        return text
    return f"{found['code']} {found['words']}".replace("\\r", "").replace("\\n", "\n")


def _document(text: str) -> Parsed | None:
    """The name, message and status of an object that the text is, or ends in; None: there is none.

    What stands before it must not be an answer by itself: servers of mail quote objects, too.
    """
    start = text.find("{")
    if start < 0 or len(text) > _LONGEST_DOCUMENT:
        return None
    before = text[:start]
    if not _STATUS_ALONE.fullmatch(before) and _of_text(before).rule != "unknown":
        return None
    given = _object(text[start:])
    # Also those directly in it: services wrap what they say.
    parts = [given, *(each for each in given.values() if isinstance(each, dict))]
    name = _first(parts, "name", "__type", "Code", "code")
    status = _first(parts, "statusCode", "httpStatusCode", "HTTPStatusCode", "status")
    number = int(status) if status.isdecimal() and len(status) == len("500") else None
    if not name and number is None:
        return None
    message = _first(parts, "message", "Message") or text
    return Parsed(text, message, name, number, is_http=True)


def _object(text: str) -> dict[str, Any]:
    """The JSON object that a text begins with, else the pairs of one as Python or JavaScript print it."""
    try:
        given, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {key: words or number for key, _, words, number in _PAIR.findall(text)}
    return dict(given)


def _first(parts: list[dict[str, Any]], *keys: str) -> str:
    for key in keys:
        for part in parts:
            if isinstance(part.get(key), str | int):
                return str(part[key])
    return ""


# --- from the ledger --------------------------------------------------------------------------


def judged_again(failure: Failure, *, mx: str = "") -> Failure | None:
    """A stored failure as the rules of today judge it; None if no provider's answer was behind it."""
    if not failure.rule.startswith(("own.", "unknown", *(f"{name}." for name in answers()))):
        return None
    own = answers()[provider_of(failure)]
    if own.is_smtp:
        return classify.classify_smtp(failure.reason, stage=stage_of(failure), mx=mx)
    *_, last = failure.rule.split(".")  # no status is stored, but the rule says what it made of it
    status = int(last) if last.isdecimal() else _STATUSES.get(last)
    parsed = Parsed(failure.reason, failure.reason, failure.original_code or "", status)
    return own.judge(parsed) or classify.unknown(failure.reason)


def provider_of(failure: Failure) -> str:
    """The provider of a stored failure."""
    signs = ((name, f"{name.upper()}_", f"{name}.") for name in answers())
    found = (
        name
        for name, code, rule in signs
        if failure.code.startswith(code) or failure.rule.startswith(rule)
    )
    return next(found, relay())
