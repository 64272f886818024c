"""What a provider's own answers say of addresses: whoever is not there is not written to again.

Noted after the message is settled. A crash in between loses no more than the note: the next message to that
address is answered the same.
"""

from collections.abc import Iterator

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
from carteiro.policy.rules.ruling import Suppression
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
    """Who was refused: copies that were left out, and whom a message was for that is given up."""
    if isinstance(outcome, Taken):
        yield from outcome.refused
    elif isinstance(verdict, Dead):
        yield parcel.content.to, verdict.failure
