"""Why a message waits, and until when: the first thing that stands in its way.

Pure: what is known of the message, its job and its tenant comes from the store, ``now`` from the caller.
"""

from datetime import datetime
from enum import StrEnum

from carteiro.model import FINISHED, QueuePlace, State, StoredMessage, Tenant, value
from carteiro.policy.suppression import SUPPRESSED

_UNDELIVERED = frozenset({State.FAILED, State.EXPIRED})
_MAY_BE_DELIVERED = (
    "It may have been delivered: an attempt handed it over, and no answer came that says what became of it. "
    "Look for it at the provider, or ask the recipient."
)
_TO_KEEP_IT_ONCE = "If it arrived, cancel it."


class Why(StrEnum):
    """What a message waits for."""

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
    """Why it waits, in a word and in a sentence; ``until`` None: nobody can say."""

    why: Why
    until: datetime | None
    text: str


def explain(
    message: StoredMessage, place: QueuePlace | None, tenant: Tenant, *, now: datetime
) -> Waiting:
    """Why the message is not sent yet, as things stand; ``place`` None: it has no job."""
    if message.state in FINISHED:
        return Waiting(Why.FINISHED, None, _ended(message))
    if place is None:
        return Waiting(Why.MOVING, None, "It changed while it was looked at: look again.")
    if place.is_claimed:
        return _in_flight(message, place)
    return (
        _held(tenant)
        or _parked(message, place, now)
        or _in_doubt(message)
        or _limited(place, tenant)
        or Waiting(Why.TURN, None, "It is ready, and waits for its tenant's turn and for a worker.")
    )


def explain_without_queue(message: StoredMessage) -> Waiting:
    """The same while the queue, which knows where its job is, is away."""
    if message.state in FINISHED:
        return Waiting(Why.FINISHED, None, _ended(message))
    text = "The queue is away: it waits for that, and goes on when the queue is back."
    return Waiting(Why.QUEUE_AWAY, None, text)


def _ended(message: StoredMessage) -> str:
    """How it ended; of what was not delivered also why, and what can be done."""
    doubt = f" {_MAY_BE_DELIVERED}" if message.in_doubt and message.state is not State.SENT else ""
    if message.state not in _UNDELIVERED:
        return f"It ended as {message.state} and waits for nothing.{doubt}"
    failure = message.failure
    why = f" ({failure.code}: {failure.reason})" if failure else ""
    if message.content is None:
        gone = "Its content is gone: it cannot be sent again."
        return f"It ended as {message.state}{why}.{doubt} {gone}"
    redrive = f"carteiro dead redrive {message.id} sends it again"
    if failure is not None and failure.code == SUPPRESSED.code:
        remove = f"carteiro suppression rm {message.to or 'ADDRESS'} --tenant {message.tenant}"
        redrive = f"first {remove}, if it may be written to again; then {redrive}"
    if doubt:
        return f"It ended as {message.state}{why}.{doubt} Only if it did not arrive, {redrive}."
    return f"It ended as {message.state}{why} and waits for you: {redrive}."


def _in_flight(message: StoredMessage, place: QueuePlace) -> Waiting:
    if message.state is State.SENT_ATTEMPT:
        text = "An attempt is being made; when its hold ends without an answer, it is in doubt."
    else:
        text = "A worker has it; when its lease ends without a word, another may take it."
    return Waiting(Why.IN_FLIGHT, place.parked_until, text)


def _held(tenant: Tenant) -> Waiting | None:
    if tenant.disabled:
        return Waiting(Why.TENANT_DISABLED, None, "Its tenant is disabled, until it is enabled.")
    if tenant.paused:
        return Waiting(Why.TENANT_PAUSED, None, "Its tenant is paused, until it is resumed.")
    return None


def _parked(message: StoredMessage, place: QueuePlace, now: datetime) -> Waiting | None:
    until = place.parked_until
    if until is None:
        return None
    if message.state is State.SENT_ATTEMPT:
        return Waiting(Why.IN_DOUBT, until, "It is in doubt, and will be looked at again then.")
    if message.due_at <= now:
        return Waiting(Why.PUT_BACK, until, "A worker gave it back, to be taken again then.")
    if message.state is State.RETRY_SCHEDULED:
        reason = message.failure.reason if message.failure else "an error"
        text = f"Attempt {message.attempts} failed ({reason}); it is tried again then."
        if message.in_doubt:
            text = f"It is tried again then ({reason}). {_MAY_BE_DELIVERED} {_TO_KEEP_IT_ONCE}"
        return Waiting(Why.RETRY, until, text)
    return Waiting(Why.SCHEDULED, until, "It was asked to go out then, and no sooner.")


def _in_doubt(message: StoredMessage) -> Waiting | None:
    if message.state is not State.SENT_ATTEMPT:
        return None
    text = "An attempt was begun and nobody knows how it ended; the next worker decides."
    return Waiting(Why.IN_DOUBT, None, text)


def _limited(place: QueuePlace, tenant: Tenant) -> Waiting | None:
    if tenant.cap is not None and place.tenant_in_flight >= tenant.cap:
        text = (
            f"Its tenant is at its concurrency cap: {place.tenant_in_flight} in flight, cap {tenant.cap}. "
            "It goes on when one of them ends."
        )
        return Waiting(Why.TENANT_AT_CAP, None, text)  # a lease is rarely used to its end
    if tenant.rate_per_second is not None and place.tenant_wakes_at is not None:
        text = f"Its tenant may start {tenant.rate_per_second:g} a second and has used them up."
        return Waiting(Why.TENANT_OUT_OF_TOKENS, place.tenant_wakes_at, text)
    if place.limited_until is not None:
        text = "The send limit that all tenants share is used up."
        return Waiting(Why.SEND_LIMIT, place.limited_until, text)
    return None
