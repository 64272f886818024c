"""What went wrong, classified once: from a reply, an error's name or any text to a `Failure`.

Pure and total: whatever a server says, there is a verdict with a reason that is not blank and with
the name of the rule that decided. What no rule knows may pass: it is retryable.
"""

import re

from carteiro.model import Category, Failure, Scope, value
from carteiro.policy import rules
from carteiro.policy.rules import Ruling

LONGEST_REASON = 500
_LONGEST_READ = 4 * LONGEST_REASON  # nothing that decides comes later, and texts may be endless
_NO_REASON = "No reason was given"

_CODE_END = r"(?!\w|\.\d)"
_ENHANCED = r"[45]\.[0-9]{1,3}\.[0-9]{1,3}(?![.\d])"  # an address such as 5.61.2.14 is not one
_REPLY_LINE = re.compile(
    rf"\s*(?P<code>[2-5][0-9]{{2}}){_CODE_END}[\s:,-]*(?:\#?(?P<enhanced>{_ENHANCED}))?(?P<text>.*)",
    re.DOTALL,
)

# Reply position is the start of a text. Even there a number may count something ("421 ms") or be
# the status line of a proxy ("503 Service Unavailable" is no bad sequence of commands).
_NOT_A_REPLY = (
    r"(?!\s*(?:ms|m?secs?|s|seconds?|min|minutes?|[kmg]?i?b|bytes?|%)(?!\w))"
    r"(?!\s+(?:internal\s+server\s+error|not\s+implemented|bad\s+gateway|service\s+unavailable"
    r"|gateway\s+time-?out)\b)"
)
_REPLY_IN_TEXT = re.compile(
    rf"""(?:^\s*|\bSMTP(?:\ (?:error|code|reply|response|status)){{0,2}}:?\ ?|\bsaid:\ )
    (?P<reply>[45][0-9]{{2}}{_CODE_END}{_NOT_A_REPLY}.*)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

_SES_NAMES = {**rules.SES, **rules.SES_COMMON}
_SES_IN_TEXT = re.compile(
    rf"""(?:^\s*(?P<bare>(?:{"|".join(rules.SES)})(?:Exception)?)(?=\s*(?::|$))
    |(?:\bAWS\.SimpleEmailService\.|\bAn\ error\ occurred\ \()
     (?P<prefixed>(?:{"|".join(_SES_NAMES)})(?:Exception)?)(?!\w))""",
    re.VERBOSE,
)
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


@value
class _Reply:
    """An SMTP reply taken apart; the enhanced code's class, where there is one, is the reply's."""

    code: str
    enhanced: str | None
    text: str

    @property
    def family(self) -> str:
        return (self.enhanced or self.code)[0]


def classify_smtp(reply: str) -> Failure:
    """Judge an SMTP reply such as ``451 4.7.1 Greylisted, try later``, of one line or more.

    The enhanced code wins over the basic one. Text decides only where codes leave it open.
    """
    return _smtp(reply, reason=reply)


def classify_ses(name: str, message: str) -> Failure:
    """Judge an error of SES by its name, with or without its prefix and its ``Exception``."""
    bare = re.split(r"[.#]", name)[-1].strip().removesuffix("Exception")
    ruling = _SES_NAMES.get(bare)
    return _failure(
        ruling or rules.UNKNOWN,
        code=rules.SES_CODES.get(bare) or f"SES_{_upper_snake(bare) or 'UNKNOWN'}",
        original_code=one_line(name) or None,
        reason=message if one_line(message) else name,
        rule=f"ses.{bare}" if ruling else "ses.unknown",
    )


def classify_resend(name: str, message: str, status: int | None = None) -> Failure:
    """Judge an error of Resend by its name, where that is unknown by the class of its HTTP status."""
    bare = one_line(name)
    ruling = rules.RESEND.get(bare)
    rule = f"resend.{bare}" if ruling else "resend.unknown"
    if ruling is None and status is not None and status // 100 == 4:  # noqa: PLR2004 - the client's fault
        ruling, rule = rules.REFUSED, "resend.status.4"
    return _failure(
        ruling or rules.UNKNOWN,
        code=f"RESEND_{_upper_snake(bare) or 'UNKNOWN'}",
        original_code=bare or None,
        reason=message if one_line(message) else name,
        rule=rule,
    )


def classify_text(text: str) -> Failure:
    """Judge any text by the code it carries: whole, at its start or behind a known prefix."""
    start = text[:_LONGEST_READ]
    if ses := _SES_IN_TEXT.search(start):
        return classify_ses(ses["bare"] or ses["prefixed"], text)
    if smtp := _REPLY_IN_TEXT.search(start):
        return _smtp(smtp["reply"], reason=text)
    return unknown(text)


def unknown(text: str) -> Failure:
    """What no rule knows: worth another try."""
    return _failure(rules.UNKNOWN, code="UNKNOWN", reason=text, rule="unknown")


def timeout(provider: str) -> Failure:
    """The provider's time ran out before anything was handed over, or without an answer."""
    return Failure(
        code=f"{_upper_snake(provider)}_TIMEOUT",
        category=Category.TIMEOUT_ERROR,
        retryable=True,
        scope=Scope.PROVIDER,
        reason=f"{provider} did not answer in time",
        rule="timeout",
    )


def network(reason: str) -> Failure:
    """The provider could not be reached."""
    ruling = Ruling(Category.TRANSIENT_ERROR, retryable=True, scope=Scope.PROVIDER)
    return _failure(ruling, code="NETWORK_ERROR", reason=reason, rule="network")


def validation(code: str, reason: str) -> Failure:
    """What was to be sent is not valid, and never will be."""
    ruling = Ruling(Category.VALIDATION_ERROR, retryable=False, scope=Scope.MESSAGE)
    return _failure(ruling, code=code, reason=reason, rule=f"validation.{code}")


def task_error(exception: BaseException) -> Failure:
    """A task raised something that it did not classify itself."""
    name = type(exception).__name__
    message = _message_of(exception)
    return _failure(
        rules.UNKNOWN,
        code="TASK_ERROR",
        original_code=name,
        reason=f"{name}: {message}" if message else name,
        rule="task",
    )


def in_doubt() -> Failure:
    """An attempt was declared and its worker never came back to say how it ended."""
    return Failure(
        code="IN_DOUBT",
        category=Category.TRANSIENT_ERROR,
        retryable=True,
        scope=Scope.MESSAGE,
        reason="An attempt was begun and its outcome was never recorded",
        rule="in_doubt",
    )


def crashes_worker(claims: int) -> Failure:
    """The message was claimed again and again, and no worker lived to attempt it."""
    return Failure(
        code="CRASHES_WORKER",
        category=Category.PERMANENT_ERROR,
        retryable=False,
        scope=Scope.MESSAGE,
        reason=f"No worker lived to attempt it: {claims} claims were neither settled nor released",
        rule="crashes_worker",
    )


# --- SMTP -------------------------------------------------------------------------------------


def _smtp(reply: str, *, reason: str) -> Failure:
    parts = _take_apart(reply[:_LONGEST_READ])
    if parts is None:
        return unknown(reason)
    rule, ruling = _rule_for(parts)
    return _failure(
        ruling,
        code=parts.code,
        original_code=parts.enhanced or parts.code,
        reason=reason,
        rule=rule,
    )


def _take_apart(reply: str) -> _Reply | None:
    """The parts of a reply; the codes that its further lines repeat are not text."""
    first = _REPLY_LINE.match(reply)
    if first is None:
        return None
    enhanced: str | None = None
    texts: list[str] = []
    for line in reply.splitlines():
        parts = _REPLY_LINE.match(line)
        if parts is None or parts["code"] != first["code"]:
            texts.append(line)
        else:
            enhanced = enhanced or parts["enhanced"]
            texts.append(parts["text"])
    return _Reply(first["code"], enhanced, " ".join(" ".join(texts).split()))


def _rule_for(reply: _Reply) -> tuple[str, Ruling]:
    enhanced = reply.enhanced or ""
    if ruling := rules.ENHANCED.get(enhanced):
        return f"smtp.enhanced.{enhanced}", ruling
    for rule in rules.TEXT_RULES:
        if _may_decide(rule, reply) and rule.words.search(reply.text):
            return f"smtp.text.{rule.name}", rule.ruling
    subject = enhanced.rpartition(".")[0]
    if ruling := rules.SUBJECTS.get(subject):
        return f"smtp.subject.{subject}", ruling
    ruling = rules.CODES.get(reply.code)
    if ruling and reply.family == reply.code[0]:
        return f"smtp.code.{reply.code}", ruling
    return f"smtp.class.{reply.family}", rules.CLASSES[reply.family]


def _may_decide(rule: rules.TextRule, reply: _Reply) -> bool:
    """Text softens ambiguous codes, details temporary ones, and never hardens a temporary reply."""
    is_open = reply.code in rules.AMBIGUOUS_CODES or reply.code[0] == "4"
    return is_open and (rule.ruling.retryable or reply.family == "5")


# --- words ------------------------------------------------------------------------------------


def _failure(
    ruling: Ruling, *, code: str, reason: str, rule: str, original_code: str | None = None
) -> Failure:
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
    """The text as any store, log and terminal can take it: one short line of printable characters.

    Servers and tasks say what they like: control sequences, NUL, half a surrogate pair.
    """
    seen = text[:_LONGEST_READ]
    if not seen.isprintable():
        seen = "".join(each if each.isprintable() else " " for each in seen)
    line = " ".join(seen.split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def _upper_snake(name: str) -> str:
    return _HUMPS.sub("_", name).strip("_").upper()[:64]


def _message_of(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception:  # noqa: BLE001 - a task's own __str__ may raise anything; its failure must still be told
        return ""
