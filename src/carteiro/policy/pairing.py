"""Decide who may attempt when the queue is kept apart from the ledger: the ledger decides, the queue advises.

``told`` is the queue's answer about a claim: True, False, or None if it cannot be asked. A queue may have lost
everything since the claim, so the hold of an attempt is respected regardless of the queue.
"""

from carteiro.model import ClaimId, Dead, End, State
from carteiro.policy.lifecycle import Entry, is_live, is_open

_WAITING = (State.ENQUEUED, State.RETRY_SCHEDULED)


def owns_start(entry: Entry, claim: ClaimId, *, told: bool | None, now: int) -> bool:
    """True if a claim may declare; of two such claims the entry decides."""
    return told is not False or _holds(entry, claim, now)


def owns_end(entry: Entry, end: End, *, told: bool | None, now: int) -> bool:
    """True if an end belongs to the job's claim; False for a repetition and a late result."""
    claim = end.lease.claim
    if entry.holder == claim:
        return is_open(entry) and (told is not False or _holds(entry, claim, now))
    if is_open(entry) and is_live(entry.held_until, now):
        return False
    if told is not None:
        return told
    return not is_open(entry) and (not entry.declares or isinstance(end.verdict, Dead))


def is_clear(entry: Entry, claim: ClaimId, *, now: int) -> bool:
    """True if an unexpired lease needs no queue to confirm it: nobody but its claim can have ended or moved the job."""
    is_waiting = entry.state in _WAITING and entry.holder != claim
    is_as_accepted = entry.round == 1 and entry.cancel_requested_at is None
    return _holds(entry, claim, now) or (is_waiting and is_as_accepted)


def not_yet(
    state: State, held_until: int | None, due_at: int, *, queued_at: int, now: int
) -> int | None:
    """Time until which a claimed job must wait, if the queue was wrong; ``queued_at`` is its due time in the queue."""
    if state == State.SENT_ATTEMPT and is_live(held_until, now):
        return held_until
    return due_at if due_at > now and due_at != queued_at else None


def _holds(entry: Entry, claim: ClaimId, now: int) -> bool:
    return is_open(entry) and entry.holder == claim and is_live(entry.held_until, now)
