"""Classify an answer once: from a reply, a status or any text to a `Failure`.

Pure and total: every answer gets a verdict, with a reason that is not blank and the name of the rule
that decided. An answer that no rule knows is retryable.

An SMTP reply is judged in this order; the first step that decides wins:

1. the stage: a reply before any recipient is about the relay, and one at a login about our account;
2. phrases of the answering system, known by its host or its own phrases (`rules.systems`);
3. phrases that name a cause, of any system (`rules.words`);
4. an enhanced code that is specific (`rules.codes.ENHANCED`), unless phrases refuse for good what it would retry;
5. phrases that only hint at a cause (`rules.words`);
6. the rest: a generic enhanced code, its subject, the code at its stage, its class.

Rules of the operator come first, except for a timeout after the hand-over: see `own_rules`.
"""

import re
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from carteiro.errors import DeliveryFailed
from carteiro.model import Category, Failure, Scope
from carteiro.policy.rules import codes, http, systems, words
from carteiro.policy.rules.phrases import Said
from carteiro.policy.rules.ruling import (
    ACCOUNT_LATER,
    BAD_MESSAGE,
    INVALID_MESSAGE,
    MESSAGE_LATER,
    NO_MAILBOX,
    OUR_ACCOUNT,
    OUR_SENDER,
    TIMED_OUT,
    UNAVAILABLE,
    UNKNOWN,
    UNREACHED_RECIPIENT,
    Ruling,
    later,
)
from carteiro.policy.rules.words import TextRule
from carteiro.policy.stage import CONTENT, SESSION, Stage

LONGEST_REASON = 500
LONGEST_READ = 4 * LONGEST_REASON  # the deciding part comes earlier, and texts may be endless
_NO_REASON = "No reason was given"

_CODE_END = r"(?!\w|\.\d)"
_ENHANCED = r"[45]\.[0-9]{1,3}\.[0-9]{1,3}(?![.\d])"  # an IP address such as 5.61.2.14 is not one
_REPLY_LINE = re.compile(
    rf"\s*(?P<code>[2-5][0-9]{{2}}){_CODE_END}[\s:,-]*(?:[#\[(]?(?P<enhanced>{_ENHANCED}))?(?P<text>.*)",
    re.DOTALL,
)
_IN_BRACKETS = re.compile(rf"\(#(?P<enhanced>{_ENHANCED})")

# A code counts at the start of a text. Even there a number may count something ("421 ms") or be
# the status line of a proxy ("503 Service Unavailable" is not a bad sequence of commands).
_NOT_A_REPLY = (
    r"(?!\s*(?:ms|m?secs?|s|seconds?|min|minutes?|[kmg]?i?b|bytes?|%)(?!\w))"
    r"(?!\s+(?:internal\s+server\s+error|not\s+implemented|bad\s+gateway|service\s+unavailable"
    r"|gateway\s+time-?out)\b)"
)
_REPLY_IN_TEXT = re.compile(
    rf"""(?:^\s*|\bSMTP(?:\ (?:error|code|reply|response|status)){{0,2}}[:;]?\ ?|\bsaid:\ )
    (?P<reply>[45][0-9]{{2}}{_CODE_END}{_NOT_A_REPLY}.*)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

# RFC 3463: "other or undefined", and everything that security and policy forbid.
_OTHER, _POLICY = ".0", "5.7"

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


class _Reply(NamedTuple):
    """The parts of an SMTP reply."""

    code: str
    enhanced: str | None
    text: str

    @property
    def family(self) -> str:
        """The class of the enhanced code, else of the code; temporary if either of them is."""
        return self.code[0] if self.code[0] == "4" else (self.enhanced or self.code)[0]


def classify_smtp(reply: str, *, stage: Stage | None = None, mx: str = "") -> Failure:
    """Judge an SMTP reply such as ``451 4.7.1 Greylisted, try later``, of one line or more.

    ``mx`` is the host that answered. The stage becomes part of the rule's name: ``smtp.code.550@mail``.
    """
    return _smtp(reply, reason=reply, stage=stage, mx=mx)


def classify_text(text: str, *, stage: Stage | None = None, mx: str = "") -> Failure:
    """Judge any text by the SMTP reply in it: the whole text, its start, or after a known prefix."""
    smtp = _REPLY_IN_TEXT.search(text[:LONGEST_READ])
    return _smtp(smtp["reply"], reason=text, stage=stage, mx=mx) if smtp else unknown(text)


def classify_http(status: int, text: str) -> Failure:
    """Judge an HTTP status without an error name, of any service."""
    ruling = http.ruling_of(status) or UNKNOWN
    return failure_of(ruling, code=f"HTTP_{status}", reason=text, rule=f"http.status.{status}")


def unknown(text: str) -> Failure:
    """The failure for an answer that no rule knows: retryable."""
    return failure_of(UNKNOWN, code="UNKNOWN", reason=text, rule="unknown")


def timeout(provider: str) -> Failure:
    """The call timed out before the hand-over, or without an answer."""
    code = f"{upper_snake(provider)}_TIMEOUT"
    reason = f"{provider} did not answer in time"
    return failure_of(TIMED_OUT, code=code, reason=reason, rule="timeout")


def network(reason: str) -> Failure:
    """The provider could not be reached."""
    return failure_of(UNAVAILABLE, code="NETWORK_ERROR", reason=reason, rule="network")


def unfit(provider: str, code: str, reason: str) -> Failure:
    """The provider does not fit the settings; nothing is sent until one of them changes."""
    return failure_of(ACCOUNT_LATER, code=code, reason=reason, rule=f"{provider}.{code.lower()}")


def no_sender(provider: str) -> Failure:
    """Neither the mail nor the provider's settings have a sender."""
    reason = f"The e-mail has no from address: set from, or set {provider}.default_from"
    rule = f"{provider}.sender_missing"
    return failure_of(OUR_SENDER, code="SENDER_MISSING", reason=reason, rule=rule)


def not_international(provider: str, why: str) -> Failure:
    """An address is not ASCII before its @, and the provider does not accept that."""
    reason = f"An address is not ASCII before its @, and {why}"
    rule = f"{provider}.smtputf8_missing"
    return failure_of(UNREACHED_RECIPIENT, code="SMTPUTF8_MISSING", reason=reason, rule=rule)


def validation(code: str, reason: str) -> Failure:
    """The message is not valid, and a retry cannot fix it."""
    return failure_of(INVALID_MESSAGE, code=code, reason=reason, rule=f"validation.{code}")


def task_error(exception: BaseException) -> Failure:
    """A task raised an exception, perhaps one that it classified itself."""
    if issubclass(type(exception), DeliveryFailed):
        with suppress(BaseException):  # it may carry anything instead
            return _stated(exception.failure)  # type: ignore[attr-defined] # isinstance would run its own code
    name, message = name_of(exception), message_of(exception)
    return failure_of(
        UNKNOWN,
        code="TASK_ERROR",
        original_code=name,
        reason=f"{name}: {message}" if message else name,
        rule="task",
    )


def _stated(failure: Failure) -> Failure:
    """A task's own failure, fit for every store; raises on one that is malformed."""
    code = one_line(str.__str__(failure.code))
    original = failure.original_code
    return Failure(
        code=code,
        category=Category(failure.category),
        retryable=bool(failure.retryable),
        scope=Scope(failure.scope),
        reason=one_line(str.__str__(failure.reason)) or code,
        rule=one_line(str.__str__(failure.rule)),
        original_code=None if original is None else one_line(str.__str__(original)),
    )


def in_doubt() -> Failure:
    """An attempt was declared, and its worker never reported the result."""
    reason = "An attempt was started and its outcome was never recorded"
    return failure_of(MESSAGE_LATER, code="IN_DOUBT", reason=reason, rule="in_doubt")


def crashes_worker(claims: int) -> Failure:
    """The message was claimed repeatedly, and each worker died before an attempt."""
    reason = f"{claims} claims ended without an attempt: their workers died or hung"
    return failure_of(BAD_MESSAGE, code="CRASHES_WORKER", reason=reason, rule="crashes_worker")


# --- SMTP -------------------------------------------------------------------------------------


def _smtp(reply: str, *, reason: str, stage: Stage | None, mx: str) -> Failure:
    parts = _take_apart(reply[:LONGEST_READ])
    if parts is None:
        return unknown(reason)
    rule, ruling = _rule_for(parts, stage, mx)
    return failure_of(
        ruling,
        code=parts.code,
        original_code=parts.enhanced or parts.code,
        reason=reason,
        rule=f"{rule}@{stage}" if stage else rule,
    )


def _take_apart(reply: str) -> _Reply | None:
    """The parts of a reply; codes repeated on further lines are not text."""
    first = _REPLY_LINE.match(reply)
    if first is None:
        return None
    if "\n" not in reply and "\r" not in reply:
        return _Reply(
            first["code"], first["enhanced"] or _enhanced_at_the_end(reply), first["text"]
        )
    enhanced: str | None = None
    texts: list[str] = []
    for line in reply.splitlines():
        parts = _REPLY_LINE.match(line)
        if parts is None or parts["code"] != first["code"]:
            texts.append(line)
        else:
            enhanced = enhanced or parts["enhanced"]
            texts.append(parts["text"])
    return _Reply(first["code"], enhanced or _enhanced_at_the_end(reply), " ".join(texts))


def _enhanced_at_the_end(reply: str) -> str | None:
    """The code as qmail and similar systems write it: ``550 sorry, no mailbox here by that name (#5.1.1)``."""
    found = _IN_BRACKETS.search(reply) if "#" in reply else None
    return found["enhanced"] if found else None


def _rule_for(reply: _Reply, stage: Stage | None, mx: str) -> tuple[str, Ruling]:
    said = Said(f"{reply.code} {reply.code[0]}xx {reply.enhanced or ''} {reply.text}")
    if stage is Stage.AUTH or reply.code in codes.ACCOUNT_CODES:
        if _may_pass(reply, said):
            return "smtp.login.4", ACCOUNT_LATER
        return "smtp.login.5", OUR_ACCOUNT
    rule, ruling = _about_mail(reply, said, stage, mx)
    if stage in SESSION:
        return rule, _of_session(ruling)
    if not ruling.retryable and _may_pass(reply, said):
        ruling = later(ruling.scope)
    return rule, _of_envelope(ruling) if stage is Stage.MAIL else ruling


def _of_session(ruling: Ruling) -> Ruling:
    """Before the first mail it cannot be a message's fault; only "too fast" says more than "not now"."""
    if ruling.category is Category.QUOTA_ERROR and ruling.scope is not Scope.RECIPIENT:
        return replace(ruling, scope=Scope.PROVIDER)
    return UNAVAILABLE


def _of_envelope(ruling: Ruling) -> Ruling:
    """Before the first recipient the reply is about the relay's own rules; another relay may accept the mail."""
    category = ruling.category
    if ruling.scope is Scope.RECIPIENT:
        category = UNAVAILABLE.category if ruling.retryable else OUR_SENDER.category
    return Ruling(category, retryable=ruling.retryable, scope=Scope.PROVIDER)


def _may_pass(reply: _Reply, said: Said) -> bool:
    """True for a temporary reply, and for a text that says so; the text still names the responsible party."""
    return reply.family == "4" or bool(words.PASSING.first(said))


def _about_mail(reply: _Reply, said: Said, stage: Stage | None, mx: str) -> tuple[str, Ruling]:
    enhanced = reply.enhanced or ""
    system = systems.system_of(mx, said)
    if system and (known := systems.rule_of(system, said)):
        return _of_cause(system.name, known, reply, said)
    found = words.TEXTS.first(said)
    if found and found.name not in words.HINTS:
        return _of_cause("text", found, reply, said)
    ruling = codes.ENHANCED.get(enhanced)
    if ruling and not (found and _refuses_for_good(found.ruling, ruling)):
        return f"smtp.enhanced.{enhanced}", ruling
    if found:
        return _of_hint(found, stage)
    return _what_is_left(reply, enhanced, stage)


def _refuses_for_good(hint: Ruling, code: Ruling) -> bool:
    """A code such as "mailbox full" does not fit a text that refuses our mail for any recipient."""
    return code.retryable and not hint.retryable and hint.scope is not Scope.RECIPIENT


def _of_cause(whose: str, found: TextRule, reply: _Reply, said: Said) -> tuple[str, Ruling]:
    if found.ruling is NO_MAILBOX and not words.says_only_nobody(reply.text, said):
        whose, found = "text", words.UNKNOWN_PERHAPS
    return f"smtp.{whose}.{found.name}", found.ruling


def _of_hint(found: TextRule, stage: Stage | None) -> tuple[str, Ruling]:
    if found.name == words.POLICY and stage and (ruling := codes.POLICY_AT.get(stage)):
        return f"smtp.policy.{stage}", ruling
    return f"smtp.text.{found.name}", _at_stage(found.ruling, stage)


def _what_is_left(reply: _Reply, enhanced: str, stage: Stage | None) -> tuple[str, Ruling]:
    if ruling := codes.OPEN_ENHANCED.get(enhanced):
        is_open = enhanced.endswith(_OTHER)
        return f"smtp.enhanced.{enhanced}", _at_stage(ruling, stage) if is_open else ruling
    subject = enhanced.rpartition(".")[0]
    if subject == _POLICY and stage and (ruling := codes.POLICY_AT.get(stage)):
        return f"smtp.policy.{stage}", ruling
    if ruling := codes.SUBJECTS.get(subject):
        return f"smtp.subject.{subject}", ruling
    if stage and (ruling := codes.CODES_AT.get((reply.code, stage))):
        return f"smtp.code.{reply.code}.{stage}", ruling
    ruling = codes.CODES.get(reply.code)
    if ruling and reply.family == reply.code[0]:
        return f"smtp.code.{reply.code}", _at_stage(ruling, stage)
    return f"smtp.class.{reply.family}", codes.CLASSES[reply.family]


def _at_stage(ruling: Ruling, stage: Stage | None) -> Ruling:
    """A vague reply is judged by its stage: after the content, the content is refused."""
    if stage in CONTENT and ruling.scope is Scope.RECIPIENT:
        return replace(ruling, scope=Scope.MESSAGE)
    return ruling


# --- words ------------------------------------------------------------------------------------


def failure_of(
    ruling: Ruling, *, code: str, reason: str, rule: str, original_code: str | None = None
) -> Failure:
    """The failure of a ruling; the reason is one line, and never blank."""
    return Failure(
        code=code,
        category=ruling.category,
        retryable=ruling.retryable,
        scope=ruling.scope,
        reason=one_line(reason) or _NO_REASON,
        rule=rule,
        original_code=original_code,
    )


def one_line(text: str) -> str:
    """One short line of printable characters, safe for every store, log and terminal.

    Servers and tasks may send anything: control sequences, NUL, half a surrogate pair.
    """
    seen = text[:LONGEST_READ]
    if " " not in seen and seen.isprintable() and len(seen) <= LONGEST_REASON:
        return seen
    if not seen.isprintable():
        seen = "".join(each if each.isprintable() else " " for each in seen)
    line = " ".join(seen.split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def bare_name(name: str) -> str:
    """The name of an error without its module and the ``Exception`` at its end."""
    return re.split(r"[.#]", name)[-1].strip().removesuffix("Exception")


def upper_snake(name: str) -> str:
    """The name of an error in upper snake case, as in codes."""
    return _HUMPS.sub("_", name).strip("_").upper()[:64]


def message_of(exception: BaseException) -> str:
    """The text of an exception; "" if it cannot be made."""
    try:
        return str.__str__(str(exception))  # a subclass of str has its own code, too
    except BaseException:  # noqa: BLE001 - its own __str__ may raise anything; the failure must still be reported
        return ""


def name_of(exception: BaseException) -> str:
    """The name of an exception's class; "Exception" if the class does not tell it."""
    try:
        return str.__str__(type(exception).__name__)
    except BaseException:  # noqa: BLE001 - as above, of its metaclass
        return "Exception"
