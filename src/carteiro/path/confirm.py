"""Confirm that a claimed e-mail may be sent: the four validations, in their order.

In: a leased job. Out: `Confirmed`, or `Unfit` with the first validation that failed (no failure here
is cured by waiting), or `Unrendered`, if it was put in where nobody could render it: then it is judged
on once its words are in, or cannot be; or `NeedsCloserLook`, if its HTML needs more time than the event loop has.
Pure: a crash here leaves nothing behind, the job is merely claimed and comes back as if nothing had happened.
"""

from carteiro.email.message import Email, is_blank, restore_email, subject_fault
from carteiro.errors import InvalidMessage, SenderRefused
from carteiro.jobs.confirmation import Confirmation, Confirmed, NeedsCloserLook, Unfit, Unrendered
from carteiro.model import Category, Failure, LeasedJob, Scope
from carteiro.policy.addresses import judge_address
from carteiro.policy.html import SCREENED_AT_ONCE, find_danger, look_closely, spells_danger
from carteiro.policy.suppression import SUPPRESSED

INTEGRITY = "INTEGRITY"
OUTBOX = "OUTBOX"
RECIPIENT = "RECIPIENT"
TEMPLATE = "TEMPLATE"
VALIDATIONS = (INTEGRITY, OUTBOX, RECIPIENT, TEMPLATE)

MAX_HTML_BYTES = 512 * 1024
_LONGEST_UTF8 = 4  # bytes of a character


def confirm(job: LeasedJob) -> Confirmation:
    """Judge the e-mail of a job; the first validation that fails decides. Reasons repeat no content."""
    if job.content is None:  # nothing whose integrity could be judged
        return _unfit(OUTBOX, "OUTBOX_NOT_FOUND", "the ledger has no such message")
    try:
        email = restore_email(job.content)
    except InvalidMessage as error:
        return _unfit(INTEGRITY, "INVALID_PAYLOAD", str(error))
    if job.ledger_tenant != job.tenant:
        return _unfit(OUTBOX, "OUTBOX_NOT_FOUND", "the message belongs to another tenant")
    if email.needs_words:
        return _judge_recipient(job, email) or Unrendered(email)
    return judge_rendered(job, email)


def judge_rendered(job: LeasedJob, email: Email) -> Confirmed | Unfit | NeedsCloserLook:
    """Judge an e-mail that has its words, as far as that takes a moment."""
    unfit = _judge_recipient(job, email) or _judge_template(email)
    if unfit is not None:
        return unfit
    if email.html and (len(email.html) > SCREENED_AT_ONCE or spells_danger(email.html)):
        return NeedsCloserLook(email)
    return _without_copies(job, email)


def judge_closely(job: LeasedJob, email: Email) -> Confirmed | Unfit:
    """Judge the HTML of a suspect: not on the event loop, it takes up to tenths of a second."""
    html = email.html or ""
    danger = find_danger(html) if len(html) > SCREENED_AT_ONCE else look_closely(html)
    if danger is not None:
        return _unfit(TEMPLATE, "INVALID_TEMPLATE", f"html: {danger}")
    return _without_copies(job, email)


def unrenderable(error: InvalidMessage) -> Unfit:
    """The template is missing, or its words do not go in; or what is ready may not be sent as its From."""
    if isinstance(error, SenderRefused):
        return _unfit(INTEGRITY, "INVALID_PAYLOAD", str(error))
    return _unfit(TEMPLATE, "INVALID_TEMPLATE", str(error))


def unjudgeable() -> Unfit:
    """The judgement itself failed: an error of ours, which this message met."""
    return _unfit(
        TEMPLATE,
        "INVALID_TEMPLATE",
        "internal error while checking this message: see the log line `unexpected`",
    )


def _judge_recipient(job: LeasedJob, email: Email) -> Unfit | None:
    if job.recipient_id is not None:
        fault = _recipient_fault(job, email)
        if fault is not None:
            return _unfit(RECIPIENT, "RECIPIENT_NOT_FOUND", fault, Scope.RECIPIENT)
    for field, addresses in (("to", (email.to,)), ("cc", email.cc), ("bcc", email.bcc)):
        if any(judge_address(address) is None for address in addresses):
            reason = f"{field}: is not an e-mail address"
            return _unfit(RECIPIENT, "INVALID_EMAIL", reason, Scope.RECIPIENT)
    if email.to in job.suppressed:
        return Unfit(RECIPIENT, SUPPRESSED)
    return None


def _without_copies(job: LeasedJob, email: Email) -> Confirmed:
    """The e-mail without the copies that must not be sent.

    What may be with its provider already goes again as it was: another mail would be no repetition.
    """
    left_out = job.suppressed & {*email.cc, *email.bcc} if job.suppressed else ()
    if not left_out or job.open_attempt or job.in_doubt:
        return Confirmed(email, VALIDATIONS)
    kept = {
        field: tuple(each for each in getattr(email, field) if each not in left_out)
        for field in ("cc", "bcc")
    }
    return Confirmed(email.model_copy(update=kept), VALIDATIONS, tuple(sorted(left_out)))


def _recipient_fault(job: LeasedJob, email: Email) -> str | None:
    recipient = job.recipient
    if recipient is None or recipient.tenant != job.tenant:
        return "the recipient does not exist"
    if recipient.deleted_at is not None:
        return "the recipient was deleted"
    if _with_plain_domain(recipient.email) != _with_plain_domain(email.to):
        return "the recipient has another e-mail address"
    return None


def _with_plain_domain(address: str) -> str:
    local, at, domain = address.rpartition("@")
    return f"{local}{at}{domain.lower()}"


def _judge_template(email: Email) -> Unfit | None:
    fault = _template_fault(email)
    return None if fault is None else _unfit(TEMPLATE, "INVALID_TEMPLATE", fault)


def _template_fault(email: Email) -> str | None:
    if (fault := subject_fault(email.subject)) is not None:
        return f"subject: {fault}"
    if is_blank(email.html):
        return "html or text is required" if is_blank(email.text) else None
    if _is_too_large(email.html or ""):
        return f"html: must have at most {MAX_HTML_BYTES} bytes"
    return None


def _is_too_large(html: str) -> bool:
    if len(html) * _LONGEST_UTF8 <= MAX_HTML_BYTES:
        return False
    return len(html.encode()) > MAX_HTML_BYTES


def _unfit(validation: str, code: str, reason: str, scope: Scope = Scope.MESSAGE) -> Unfit:
    failure = Failure(
        code=code,
        category=Category.VALIDATION_ERROR,
        retryable=False,
        scope=scope,
        reason=reason,
        rule=f"validation.{validation.lower()}",
    )
    return Unfit(validation, failure)
