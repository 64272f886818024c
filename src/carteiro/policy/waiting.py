"""Why a message waits, and until when: the first obstacle.

Pure: the data on the message, its job and its tenant comes from the store, ``now`` from the caller.
"""

from datetime import datetime
from enum import StrEnum

from carteiro.model import DEAD, FINISHED, QueuePlace, State, StoredMessage, Tenant, value
from carteiro.policy.automatic_redrives import AwaitedRecovery
from carteiro.policy.suppression import SUPPRESSED

_MAY_BE_DELIVERED = (
    "It may have been delivered: an attempt handed it over, and its result is unknown. "
    "Check with the provider or the recipient."
)
_TO_KEEP_IT_ONCE = "If it arrived, cancel it."

_CALLED = "An attempt is running; if its hold ends without an answer, it is in doubt."
_CLAIMED = "A worker has it; if its lease expires, another worker can take it."
_READY = (
    "It is ready, and waits for its tenant's turn and a worker: carteiro doctor shows if one runs."
)


class Why(StrEnum):
    """Reasons why a message waits."""

    FINISHED = "finished"
    MOVING = "moving"
    IN_FLIGHT = "in_flight"
    TENANT_DISABLED = "tenant_disabled"
    TENANT_PAUSED = "tenant_paused"
    SCHEDULED = "scheduled"
    RETRY = "retry"
    PUT_BACK = "put_back"
    IN_DOUBT = "in_doubt"
    TENANT_AT_CAP = "tenant_at_cap"
    TENANT_OUT_OF_TOKENS = "tenant_out_of_tokens"
    SEND_LIMIT = "send_limit"
    TURN = "turn"
    QUEUE_AWAY = "queue_away"


@value
class Waiting:
    """The reason, as a word and as a sentence; ``until`` None: not known. Finished messages have no estimate.

    ``automatic_redrive``: what a dead letter waits for.
    """

    why: Why
    until: datetime | None
    text: str
    estimate: "Estimate | None" = None
    automatic_redrive: AwaitedRecovery | None = None


@value
class Estimate:
    """An estimate of when the message is sent: between two moments, None: not known. See `carteiro.policy.estimate`.

    ``ahead`` is the number of its tenant's jobs before it, at most 10,000, which means: or more. ``per_minute`` is the
    rate of its tenant. ``text`` says what the estimate is based on, or why there is none.
    """

    text: str
    earliest: datetime | None = None
    latest: datetime | None = None
    ahead: int | None = None
    per_minute: float | None = None


def explain(
    message: StoredMessage, place: QueuePlace | None, tenant: Tenant, *, now: datetime
) -> Waiting:
    """The reason why the message is not sent yet; ``place`` None: it has no job."""
    if message.state in FINISHED:
        return Waiting(Why.FINISHED, None, _ended(message))
    if place is None:
        return Waiting(Why.MOVING, None, "It changed during this query: try again.")
    if place.is_claimed:
        is_running = message.state is State.SENT_ATTEMPT
        return Waiting(Why.IN_FLIGHT, place.parked_until, _CALLED if is_running else _CLAIMED)
    return (
        _held(tenant)
        or _parked(message, place, now)
        or _in_doubt(message)
        or _limited(place, tenant)
        or Waiting(Why.TURN, None, _READY)
    )


def explain_without_queue(message: StoredMessage) -> Waiting:
    """The same while the queue, which has its job, is down."""
    if message.state in FINISHED:
        return Waiting(Why.FINISHED, None, _ended(message))
    text = "The queue is down: the message is sent after the queue is back."
    return Waiting(Why.QUEUE_AWAY, None, text)


def _ended(message: StoredMessage) -> str:
    """Its end; if it was not delivered, also the reason and the remedy."""
    doubt = f" {_MAY_BE_DELIVERED}" if message.in_doubt and message.state is not State.SENT else ""
    if message.state not in DEAD:
        return f"It ended as {message.state} and is finished.{doubt}"
    failure = message.failure
    why = f" ({failure.code}: {failure.reason})" if failure else ""
    if message.content is None:
        gone = "Its content was pruned: it cannot be sent again."
        return f"It ended as {message.state}{why}.{doubt} {gone}"
    redrive = f"carteiro dead redrive {message.id} sends it again"
    if failure is not None and failure.code == SUPPRESSED.code:
        remove = f"carteiro suppression rm {message.to or 'ADDRESS'} --tenant {message.tenant}"
        redrive = f"first {remove}, to allow the address again; then {redrive}"
    if doubt:
        return f"It ended as {message.state}{why}.{doubt} Only if it did not arrive, {redrive}."
    return f"It ended as {message.state}{why} and is a dead letter: {redrive}."


def _held(tenant: Tenant) -> Waiting | None:
    if tenant.disabled:
        return Waiting(Why.TENANT_DISABLED, None, "Its tenant is disabled: enable it first.")
    if tenant.paused:
        return Waiting(Why.TENANT_PAUSED, None, "Its tenant is paused: resume it first.")
    return None


def _parked(message: StoredMessage, place: QueuePlace, now: datetime) -> Waiting | None:
    until = place.parked_until
    if until is None:
        return None
    if message.state is State.SENT_ATTEMPT:
        return Waiting(Why.IN_DOUBT, until, "It is in doubt, and is checked again at that time.")
    if message.due_at <= now:
        return Waiting(Why.PUT_BACK, until, "A worker returned it; it is ready again at that time.")
    if message.state is State.RETRY_SCHEDULED:
        reason = message.failure.reason if message.failure else "an error"
        text = f"Attempt {message.attempts} failed ({reason}); it is retried at that time."
        if message.in_doubt:
            text = f"It is retried at that time ({reason}). {_MAY_BE_DELIVERED} {_TO_KEEP_IT_ONCE}"
        return Waiting(Why.RETRY, until, text)
    return Waiting(Why.SCHEDULED, until, "It is scheduled for that time.")


def _in_doubt(message: StoredMessage) -> Waiting | None:
    if message.state is not State.SENT_ATTEMPT:
        return None
    text = "An attempt was started and its result is unknown; the next worker decides."
    return Waiting(Why.IN_DOUBT, None, text)


def _limited(place: QueuePlace, tenant: Tenant) -> Waiting | None:
    if tenant.cap is not None and place.tenant_in_flight >= tenant.cap:
        text = (
            f"Its tenant is at its concurrency cap: {place.tenant_in_flight} in flight, cap {tenant.cap}. "
            "It starts when one of them ends."
        )
        return Waiting(Why.TENANT_AT_CAP, None, text)  # a lease rarely lasts to its end
    if tenant.rate_per_second is not None and place.tenant_wakes_at is not None:
        text = f"Its tenant has reached its rate limit of {tenant.rate_per_second:g} a second."
        return Waiting(Why.TENANT_OUT_OF_TOKENS, place.tenant_wakes_at, text)
    if place.limited_until is not None:
        text = "The send limit of all tenants is reached."
        return Waiting(Why.SEND_LIMIT, place.limited_until, text)
    return None
