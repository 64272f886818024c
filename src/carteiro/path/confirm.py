"""Confirm that a claimed e-mail may be sent: the four validations, in their order.

In: a leased job. Out: `Confirmed`; or `Unfit` with the first failed validation, which a retry cannot fix; or
`Unrendered`, if it was accepted by SQL and must be rendered first; or `NeedsCloserLook`, if checking its HTML
takes too long for the event loop. Pure: a crash here leaves nothing; the job was only claimed and becomes ready again.
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
    """Validate the e-mail of a job; the first failed validation decides. Reasons contain no content."""
    if job.content is None:  # no content to validate
        return _unfit(OUTBOX, "OUTBOX_NOT_FOUND", "the ledger has no such message")
    try:
        email = restore_email(job.content)
    except InvalidMessage as error:
        return _unfit(INTEGRITY, "INVALID_PAYLOAD", str(error))
    if job.ledger_tenant != job.tenant:
        return _unfit(OUTBOX, "OUTBOX_NOT_FOUND", "the message belongs to another tenant")
    if email.template is not None and email.needs_words:
        return _judge_recipient(job, email) or Unrendered(email)
    return judge_rendered(job, email)


def judge_rendered(job: LeasedJob, email: Email) -> Confirmed | Unfit | NeedsCloserLook:
    """Validate a rendered e-mail, except for HTML that takes long."""
    if (unfit := _judge_recipient(job, email)) is not None:
        return unfit
    if (fault := _template_fault(email)) is not None:
        return _unfit(TEMPLATE, "INVALID_TEMPLATE", fault)
    if email.html and (len(email.html) > SCREENED_AT_ONCE or spells_danger(email.html)):
        return NeedsCloserLook(email)
    return _without_copies(job, email)


def judge_closely(job: LeasedJob, email: Email) -> Confirmed | Unfit:
    """Check long or suspicious HTML. Not for the event loop: it takes up to tenths of a second."""
    html = email.html or ""
    danger = find_danger(html) if len(html) > SCREENED_AT_ONCE else look_closely(html)
    if danger is not None:
        return _unfit(TEMPLATE, "INVALID_TEMPLATE", f"html: {danger}")
    return _without_copies(job, email)


def unrenderable(error: InvalidMessage) -> Unfit:
    """The template is missing or cannot be rendered, or the rendered e-mail may not use its From."""
    if isinstance(error, SenderRefused):
        return _unfit(INTEGRITY, "INVALID_PAYLOAD", str(error))
    return _unfit(TEMPLATE, "INVALID_TEMPLATE", str(error))


def unjudgeable() -> Unfit:
    """The check itself failed with an internal error."""
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
    if judge_address(email.to) is None:
        return _no_address("to")
    for field, addresses in (("cc", email.cc), ("bcc", email.bcc)):
        for address in addresses:
            if judge_address(address) is None:
                return _no_address(field)
    if email.to in job.suppressed:
        return Unfit(RECIPIENT, SUPPRESSED)
    return None


def _no_address(field: str) -> Unfit:
    reason = f"{field}: is not an e-mail address"
    return _unfit(RECIPIENT, "INVALID_EMAIL", reason, Scope.RECIPIENT)


def _without_copies(job: LeasedJob, email: Email) -> Confirmed:
    """Remove the copies to suppressed addresses.

    An e-mail that the provider may have already is repeated unchanged, so that it counts as a repetition.
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


def _template_fault(email: Email) -> str | None:
    if (fault := subject_fault(email.subject)) is not None:
        return f"subject: {fault}"
    html = email.html
    if not html or html.isspace():
        return "html or text is required" if is_blank(email.text) else None
    if len(html) * _LONGEST_UTF8 > MAX_HTML_BYTES < len(html.encode()):
        return f"html: must have at most {MAX_HTML_BYTES} bytes"
    return None


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
