"""Who may attempt when the queue is kept apart from the ledger: the queue is heard, the ledger decides.

``told`` is what the queue says of a claim: True, False, or None where it cannot be asked. A queue may have lost
everything since it handed the job out, so the hold of an attempt counts whatever the queue says.
"""

from carteiro.model import FINISHED, ClaimId, Dead, End
from carteiro.policy.lifecycle import Entry, is_live, is_open


def owns_start(entry: Entry, claim: ClaimId, *, told: bool | None, now: int) -> bool:
    """Whether a claim may declare; two that both may are told apart by the entry."""
    return told is not False or _holds(entry, claim, now)


def owns_end(entry: Entry, end: End, *, told: bool | None, now: int) -> bool:
    """Whether an end is its job's own; a repetition and what comes late are not."""
    claim = end.lease.claim
    if entry.holder == claim:
        return is_open(entry) and (told is not False or _holds(entry, claim, now))
    if is_open(entry) and is_live(entry.held_until, now):
        return False
    if told is not None:
        return told
    return not is_open(entry) and (not entry.declares or isinstance(end.verdict, Dead))


def not_yet(entry: Entry, *, due_at: int, now: int) -> int | None:
    """Until when a claimed job must wait, for the queue did not know better; ``due_at`` is when it thought it due."""
    if is_open(entry) and is_live(entry.held_until, now):
        return entry.held_until
    return entry.due_at if entry.due_at > now and entry.due_at != due_at else None


def is_over(entry: Entry) -> bool:
    """Whether a claimed job has nothing left to do."""
    return entry.state in FINISHED


def _holds(entry: Entry, claim: ClaimId, now: int) -> bool:
    return is_open(entry) and entry.holder == claim and is_live(entry.held_until, now)
