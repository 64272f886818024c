"""Automatic redrives: the dead letters that they may send, when, and whether a provider has recovered.

Pure: figures, circuits and times come from the caller.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from carteiro.model import (
    EMAIL,
    NOTICES,
    AutomaticPlan,
    Category,
    DeadLetter,
    DeadReason,
    Failure,
    KindName,
    StoredMessage,
    Tenant,
    TenantId,
    value,
)
from carteiro.policy.consequences import is_providers_own

NEWS: Final = timedelta(minutes=3)  # results of this time say whether a provider sends
_PASSING = (Category.TRANSIENT_ERROR, Category.TIMEOUT_ERROR, Category.QUOTA_ERROR)


def waits_for(
    tenant: TenantId, kind: KindName, provider: str | None, reason: DeadReason, failure: Failure
) -> str | None:
    """The provider whose recovery redrives an e-mail that died like this; None: only a person redrives it."""
    is_usual = kind == EMAIL and tenant != NOTICES  # a stale notice helps nobody
    has_failed = reason is DeadReason.MAX_ATTEMPTS_EXCEEDED
    return provider if is_usual and has_failed and may_pass(failure) else None


def may_pass(failure: Failure) -> bool:
    """True if the provider itself failed, perhaps for a time. Other failures can be made by a tenant."""
    return failure.retryable and failure.category in _PASSING and is_providers_own(failure)


class Standing(StrEnum):
    """The standing of a provider, as the store knows it."""

    OPEN = "open"  # its circuit
    FAILING = "failing"
    SENDING = "sending"
    QUIET = "quiet"  # nobody has called it of late: only a try can tell


def standing_of(figures: Mapping[str, int], *, is_open: bool) -> Standing:
    """The standing of a provider, by its figures of the latest minutes and its circuit."""
    if is_open:
        return Standing.OPEN
    sent = figures.get("sent", 0)
    if figures.get("passing", 0) > sent:
        return Standing.FAILING
    return Standing.SENDING if sent else Standing.QUIET


def may_try(standing: Standing) -> bool:
    """True if a canary may be sent: it sends, or is quiet. Without other mail, only the canary shows a recovery."""
    return standing in {Standing.SENDING, Standing.QUIET}


# --- what a dead letter waits for --------------------------------------------------------------


@value
class AwaitedRecovery:
    """The recovery that a dead letter waits for; ``provider`` None: none redrives it, and the text says why.

    ``round`` of ``rounds`` is the next one, not before that moment.
    """

    text: str
    provider: str | None = None
    not_before: datetime | None = None
    round: int | None = None
    rounds: int | None = None


@value
class Circumstances:
    """The facts that decide about a dead letter, besides itself; ``standing`` is that of its provider."""

    plan: AutomaticPlan
    tenant: Tenant
    is_on_for_type: bool
    standing: Standing
    now: datetime


def awaited_recovery(
    letter: DeadLetter, message: StoredMessage, around: Circumstances
) -> AwaitedRecovery:
    """The recovery that the dead letter waits for, or the reason why it waits for none."""
    if letter.redriven_at is not None:
        return AwaitedRecovery("It was redriven, and has not ended yet.")
    plan, text = around.plan, _why_not(letter, message, around)
    if text is not None or letter.waits_for is None or letter.waits_since is None:
        return AwaitedRecovery(text or _LEFT_OUT)
    done, provider = letter.automatic_rounds, letter.waits_for
    not_before = letter.waits_since + plan.cool_down_after(done)
    if not_before >= message.expires_at:
        return AwaitedRecovery(
            "It is not redriven automatically: it expires before its next round."
        )
    text = f"It waits for provider {provider}: automatic redrive {done + 1} of {plan.rounds}. {_NEWS[around.standing]}"
    if around.tenant.is_held:
        text = f"{text} It also waits while its tenant is paused or disabled."
    return AwaitedRecovery(text, provider, not_before, done + 1, plan.rounds)


def _why_not(  # noqa: PLR0911 - a list of reasons; the first is returned
    letter: DeadLetter, message: StoredMessage, around: Circumstances
) -> str | None:
    if letter.kind != EMAIL:
        return "Only e-mails are redriven automatically."
    if letter.reason is DeadReason.IN_DOUBT:
        return "It may have been delivered: it is not redriven automatically."
    if letter.reason is DeadReason.EXPIRED:
        return _TOO_LATE
    if letter.reason is not DeadReason.MAX_ATTEMPTS_EXCEEDED or not may_pass(letter.failure):
        return "It is not redriven automatically: its last failure is not a temporary one of its provider."
    if not around.plan.is_on:
        return "Automatic redrive is switched off (automatic_redrive.enabled)."
    if not around.tenant.automatic_redrive:
        return "Automatic redrive is switched off for its tenant."
    if not around.is_on_for_type:
        return "Automatic redrive is switched off for its template type."
    if letter.automatic_rounds >= around.plan.rounds:
        return f"It is not redriven automatically again: {letter.automatic_rounds} rounds did not send it."
    if message.expires_at <= around.now:
        return _TOO_LATE
    return None


_TOO_LATE = "Its time to live is over: an automatic redrive does not start a new one."
_LEFT_OUT = (
    "It is not redriven automatically: it was imported, its automatic redrive was cancelled, or it could not be"
    " redriven when its cool-down was over."
)
_NEWS = {
    Standing.OPEN: "The provider's circuit is open.",
    Standing.FAILING: "The provider still fails.",
    Standing.SENDING: "The provider sends again.",
    Standing.QUIET: "The provider was not called in the last minutes: a few messages are tried first.",
}
