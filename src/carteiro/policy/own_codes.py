"""Which codes a rule of the operator's own may wait for: one that no answer has would never fit, unnoticed."""

import difflib
import re
from collections.abc import Iterable

from carteiro.policy.classify import classify_resend, classify_ses
from carteiro.policy.rules import resend, ses

SMTP, SES, RESEND, SANDBOX = "smtp", "ses", "resend", "sandbox"

_REPLY = re.compile(r"[2-5][0-9]{2}")
_NEW = re.compile(r"(SES|RESEND)_[A-Z0-9_]+")
_FOUND_OUT = frozenset({"INVALID_PAYLOAD", "NETWORK_ERROR", "SENDER_MISSING"})
_SES_CODES = {name: classify_ses(name, name).code for name in ses.NAMES | ses.COMMON_NAMES}
_RESEND_CODES = {name: classify_resend(name, name).code for name in resend.NAMES}

# What each provider may say, or we of it, but for the numbers of SMTP.
_CODES = {
    SMTP: _FOUND_OUT | {"AUTH_ERROR", "SMTPUTF8_MISSING", "SMTP_TIMEOUT", "TLS_ERROR", "UNKNOWN"},
    SES: _FOUND_OUT
    | {"CREDENTIALS_MISSING", "REGION_MISSING", "SMTPUTF8_MISSING", "TLS_ERROR"}
    | frozenset(_SES_CODES.values()),
    RESEND: _FOUND_OUT | {"RESEND_TIMEOUT", "RESEND_UNKNOWN"} | frozenset(_RESEND_CODES.values()),
    SANDBOX: frozenset({"SANDBOX_TIMEOUT", "SES_MESSAGE_REJECTED", "SES_THROTTLING", "UNKNOWN"}),
}
_ALL = frozenset().union(*_CODES.values())
_NUMBERED = frozenset({"", SMTP, SANDBOX})
_ALIKE = 0.75  # a name that is nearer to a known one is a slip, and no new error


def refuse_unfit(code: str, provider: str = "") -> None:
    """`ValueError` if no answer of the provider, or of any, can have the code.

    A name that is like no other may be new: providers add errors before we learn of them. Of a provider
    without a list nothing is known.
    """
    if provider and provider not in _CODES:
        return
    known = _CODES[provider] if provider else _ALL
    if code in known or (_REPLY.fullmatch(code) and provider in _NUMBERED):
        return
    meant = _meant(code, known)
    is_new = _NEW.fullmatch(code) and provider in {"", code.partition("_")[0].lower()}
    if is_new and not meant:
        return
    hint = f"did you mean {' or '.join(meant)}?" if meant else _example(provider)
    raise ValueError(f"should be a code that answers of {provider or 'a provider'} have: {hint}")


def _meant(code: str, known: Iterable[str]) -> list[str]:
    """The codes that were meant: by the name that a provider itself uses, else those that look like it."""
    named = (_SES_CODES.get(code.removesuffix("Exception")), _RESEND_CODES.get(code))
    if exact := [each for each in named if each in set(known)]:
        return [each for each in exact if each]
    return difflib.get_close_matches(code.upper(), sorted(known), n=2, cutoff=_ALIKE)


def _example(provider: str) -> str:
    examples = {SES: "SES_MESSAGE_REJECTED", RESEND: "RESEND_RATE_LIMIT_EXCEEDED"}
    return f"such as {examples.get(provider, '550')}; carteiro classify shows that of an answer"
