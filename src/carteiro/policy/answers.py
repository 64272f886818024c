"""Answers as people hand them in, and as the ledger keeps them, judged as the worker would judge them."""

import re

from carteiro.model import Failure
from carteiro.policy.classify import classify_resend, classify_ses, classify_smtp, classify_text
from carteiro.policy.own_rules import stage_of
from carteiro.policy.rules import resend, ses
from carteiro.policy.stage import Stage

SMTP, SES, RESEND = "smtp", "ses", "resend"

_NAMED = re.compile(
    r"\s*(?:(?P<status>[1-5]\d\d)\s+)?(?P<name>[A-Za-z][\w.#]*)[\s:,]*(?P<rest>.*)", re.DOTALL
)
_JUDGED = (f"{SMTP}.", f"{SES}.", f"{RESEND}.", "own.", "unknown")


def judge_answer(
    text: str, *, provider: str = "", stage: Stage | None = None, mx: str = ""
) -> Failure:
    """Judge an answer: an SMTP reply, or a name and a message; without a provider by what it looks like."""
    if provider == SMTP or stage:
        found = classify_smtp(text, stage=stage, mx=mx)
        return found if found.rule != "unknown" else classify_text(text, stage=stage, mx=mx)
    if not (named := _NAMED.fullmatch(text)):
        return classify_text(text, mx=mx)
    name, status = named["name"], named["status"]
    if provider == RESEND or (not provider and _is_resends(name)):
        return classify_resend(name, named["rest"] or text, int(status) if status else None)
    found = classify_text(text, mx=mx)
    is_name = provider == SES or name.removesuffix("Exception") in ses.COMMON_NAMES
    if found.rule == "unknown" and status is None and is_name:
        return classify_ses(name, named["rest"])
    return found


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


def _is_resends(name: str) -> bool:
    return "_" in name and name in resend.NAMES
