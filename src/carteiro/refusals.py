"""What a provider's own answers say of addresses: whoever is not there is not written to again.

Noted after the message is settled. A crash in between loses no more than the note: the next message to that
address is answered the same.
"""

from collections.abc import Iterator

from carteiro.email import Email
from carteiro.errors import StoreError
from carteiro.model import (
    ZERO,
    Dead,
    Failure,
    NewSuppression,
    Outcome,
    SuppressionReason,
    Taken,
    Verdict,
)
from carteiro.policy import consequences
from carteiro.policy.addresses import named_in
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import Stage
from carteiro.ports.provider import Parcel
from carteiro.ports.suppressions import Suppressions
from carteiro.telemetry import log

_REASONS = {
    Suppression.HARD: SuppressionReason.HARD_BOUNCE,
    Suppression.SOFT: SuppressionReason.SOFT_BOUNCE,
}


async def learn_refusals(
    parcel: Parcel, outcome: Outcome, verdict: Verdict, *, suppressions: Suppressions
) -> None:
    """Suppress the addresses that were refused for good, or count that they were."""
    told = [
        NewSuppression(address, _REASONS[said])
        for address, failure in _refused(parcel, outcome, verdict)
        if (said := consequences.suppression(failure)) in _REASONS
    ]
    try:
        if told:
            await suppressions.put(told, tenant=parcel.tenant)
    except StoreError as error:
        log.store_failed("suppress", error, wait=ZERO)


def _refused(parcel: Parcel, outcome: Outcome, verdict: Verdict) -> Iterator[tuple[str, Failure]]:
    """Who was refused: copies that were left out, and whom the answer is about that ended a message."""
    if isinstance(outcome, Taken):
        yield from outcome.refused
    elif isinstance(verdict, Dead):
        whom = _whom(parcel.content, verdict.failure)
        if whom is not None:
            yield whom, verdict.failure


def _whom(email: Email, failure: Failure) -> str | None:
    """Whom an answer is about: of several, the one that was asked for or that it names; None: it may be anybody."""
    addresses = {each.casefold(): each for each in (*email.bcc, *email.cc, email.to)}
    if len(addresses) == 1 or failure.rule.endswith(f"@{Stage.RCPT}"):
        return email.to
    named = named_in(failure.reason, addresses.values())
    return named[0] if len(named) == 1 else None
