"""Requests to change messages, and the rules that judge them; a store's ledger loads entries and saves changes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from carteiro import model
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import Change, Entry, is_live
from carteiro.policy.pairing import is_clear, owns_end, owns_start
from carteiro.ports.ledger import LEASED, Closed
from carteiro.stores.sql.session import Session

HERE: Final = "here"
# By a queue elsewhere, as in `carteiro.ports.ledger.Ledger`; `HERE`: jobs are kept here.
Told: TypeAlias = bool | Literal["here", "leased"] | None
Item = TypeVar("Item")
_TO_BE_TRIED_AGAIN = model.Settled(model.State.RETRY_SCHEDULED)


class Held(Protocol):
    """An entry with the claim on its job; a store adds what it needs to save it."""

    @property
    def entry(self) -> Entry | None:
        """None: the queue knows the message, the ledger does not."""

    @property
    def claim(self) -> model.ClaimId | None:
        """None: nobody has claimed the job."""

    @property
    def parked_until(self) -> int | None:
        """The end of the claim, or of the wait."""


class Judged(NamedTuple):
    """The answer of a rule, the change to be stored, and whether the claim was the job's own."""

    answer: Any
    change: Change | None = None
    owner: bool = False


class Asked(NamedTuple):
    """One item of a list: the message, the claim that asks if there is one, and the rule that judges it."""

    id: model.MessageId
    lease: model.Lease | None
    judge: Callable[[Held | None, int], Judged]


class Entries(Protocol):
    """The entries of a store."""

    async def load(
        self, session: Session, ids: Sequence[model.MessageId]
    ) -> Mapping[model.MessageId, Any]:
        """Return the entries of these ids, each with its message number; unknown ones are left out."""

    async def save(
        self, session: Session, changed: Sequence[tuple[Any, Change]], now: int
    ) -> tuple[int, bool]:
        """Store changes of entries that nobody else changed; return their number, and True if there may be work now."""

    async def write(
        self, asked: Sequence[Asked], *, declares: bool = False
    ) -> tuple[list[Any], bool]:
        """Load, judge and save: the answers; True if there may be work now. A change by others is judged again."""

    async def declare(
        self, asked: Sequence[model.Start], told: Sequence[Told] | None = None
    ) -> list[Any]:
        """Declare attempts; ``told``: the answers of a separate queue, which has the jobs."""

    async def close(self, asked: Sequence[model.End], told: Sequence[Told]) -> list[Closed | None]:
        """Settle attempts, where a separate queue has the jobs."""


def starts(asked: Sequence[model.Start], told: Sequence[Told] | None = None) -> list[Asked]:
    """Declare attempts."""
    return [
        Asked(each.lease.job, each.lease, partial(_begin, each, said))
        for each, said in _with(told, asked)
    ]


def ends(asked: Sequence[model.End]) -> list[Asked]:
    """Settle attempts."""
    return [Asked(each.lease.job, each.lease, partial(_finish, each, HERE)) for each in asked]


def closings(asked: Sequence[model.End], told: Sequence[Told]) -> list[Asked]:
    """Settle attempts whose jobs are kept elsewhere; the answers are `Closed`."""
    return [
        Asked(each.lease.job, each.lease, partial(_close, each, said))
        for each, said in _with(told, asked)
    ]


def cancels(
    ids: Sequence[model.MessageId], tenant: model.TenantId, told: Sequence[Told] | None = None
) -> list[Asked]:
    """Cancel messages of a tenant."""
    return [Asked(each, None, partial(_cancel, tenant, said)) for each, said in _with(told, ids)]


def expiries(ids: Sequence[model.MessageId], told: Sequence[Told] | None = None) -> list[Asked]:
    """Bury messages that were not sent in time; the answer is True if it was done."""
    return [Asked(each, None, partial(_expire, said)) for each, said in _with(told, ids)]


def left_of(items: Sequence[Item], is_done: Sequence[object]) -> list[Item]:
    """Those that are not done."""
    return [item for item, done in zip(items, is_done, strict=True) if not done]


def merged(usual: object, is_done: Sequence[object], others: Sequence[Any]) -> list[Any]:
    """The usual answer for each that is done, and in between the answers of those that were left."""
    left = iter(others)
    return [usual if done else next(left) for done in is_done]


def _with(told: Sequence[Told] | None, asked: Sequence[Item]) -> Iterable[tuple[Item, Told]]:
    """Pair each item with the answer of the queue; without a queue elsewhere, with `HERE`."""
    return zip(asked, [HERE] * len(asked) if told is None else told, strict=True)


def _begin(start: model.Start, told: Told, held: Held | None, now: int) -> Judged:
    if told == LEASED and _is_open_question(held, start.lease.claim, now):
        return Judged(None)
    if held is None or held.entry is None:
        return Judged(model.Refused(model.RefusedWhy.LOST))
    owner = held.claim == start.lease.claim
    if told != HERE:
        owner = owns_start(held.entry, start.lease.claim, told=told is not False, now=now)
    return Judged(*lifecycle.begin(held.entry, start, owner=owner, now=now), owner)


def _finish(end: model.End, told: Told, held: Held | None, now: int) -> Judged:
    owner = held is not None and held.claim == end.lease.claim
    if held is None or held.entry is None:  # the job has no message: it leaves the queue
        answer = model.Settled(model.State.FAILED) if owner else model.Late(None)
        return Judged(answer, owner=owner)
    if told != HERE:
        owner = owns_end(held.entry, end, told=told if told != LEASED else True, now=now)
    return Judged(*lifecycle.finish(held.entry, end, owner=owner, now=now), owner)


def _close(end: model.End, told: Told, held: Held | None, now: int) -> Judged:
    if told == LEASED and _is_open_question(held, end.lease.claim, now):
        return Judged(None)
    answer, change, owner = _finish(end, told, held, now)
    entry = None if held is None else held.entry
    again = entry.due_at if entry is not None and answer == _TO_BE_TRIED_AGAIN else None
    return Judged(Closed(answer, again), change, owner)


def _is_open_question(held: Held | None, claim: model.ClaimId, now: int) -> bool:
    """True if only the queue can tell whether an unexpired lease still has the job."""
    return held is None or held.entry is None or not is_clear(held.entry, claim, now=now)


def _cancel(tenant: model.TenantId, told: Told, held: Held | None, now: int) -> Judged:
    if held is None or held.entry is None or held.entry.tenant != tenant:
        return Judged(model.CancelAnswer.NOT_FOUND)
    return Judged(*lifecycle.cancel(held.entry, leased=is_leased(held, now, told), now=now))


def _expire(told: Told, held: Held | None, now: int) -> Judged:
    if held is None or held.entry is None:
        return Judged(answer=False)
    change = lifecycle.expire(held.entry, leased=is_leased(held, now, told), now=now)
    return Judged(change is not None, change)


def is_leased(held: Held, now: int, told: Told = HERE) -> bool:
    """Return whether a worker has the job now."""
    if told == HERE:
        return held.claim is not None and is_live(held.parked_until, now)
    return told is not False
