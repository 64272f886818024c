"""A store that is timed and counted; requests and answers stay the same."""

from collections.abc import Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any, cast

from carteiro import model
from carteiro.observability.metrics.tally import Tally
from carteiro.ports.store import Store

_LOST = model.Refused(model.RefusedWhy.LOST)


def measured_store(store: Store, tally: Tally) -> Store:
    """The same store, timed and counted. Only calls that succeed are: those that fail are in the log."""
    return cast("Store", _MeasuredStore(store, tally))


class _MeasuredStore:
    def __init__(self, store: Store, tally: Tally) -> None:
        self._store = store
        self._tally = tally

    def __getattr__(self, name: str) -> object:
        """Whatever is not measured."""
        return getattr(self._store, name)

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """As the store."""
        began = perf_counter()
        answers = await self._store.accept(new)
        if new:  # a look whether the store is there accepts nothing
            self._tally.accept_seconds.observe(perf_counter() - began)
            accepted = sum([isinstance(each, model.Accepted) for each in answers])
            self._tally.moves[model.State.ENQUEUED] += accepted
        return answers

    async def claim(self, **asked: Any) -> model.Claimed:  # noqa: ANN401 - as the store has it
        """As the store."""
        began = perf_counter()
        claimed = await self._store.claim(**asked)
        self._tally.claim_seconds.observe(perf_counter() - began)
        return claimed

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """As the store."""
        began = perf_counter()
        answers = await self._store.declare(starts)
        tally = self._tally
        tally.declare_seconds.observe(perf_counter() - began)
        begun = [
            start
            for start, answer in zip(starts, answers, strict=True)
            if answer.__class__ is model.Begun
        ]
        # A counter takes a list in one go, at a quarter of the cost.
        tally.moves.update([event.type for start in begun for event in start.events])
        tally.moves[model.State.SENT_ATTEMPT] += len(begun)
        tally.in_doubt += sum([start.open_attempt for start in begun])
        if len(begun) < len(starts):
            tally.lost["declare"] += answers.count(_LOST)
        return answers

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """As the store."""
        began = perf_counter()
        answers = await self._store.settle(ends)
        tally = self._tally
        tally.settle_seconds.observe(perf_counter() - began)
        in_time = [
            (end, answer.state)
            for end, answer in zip(ends, answers, strict=True)
            if answer.__class__ is model.Settled
        ]
        tally.moves.update([event.type for end, _ in in_time for event in end.events])
        tally.moves.update([state for _, state in in_time])
        tally.in_doubt += sum([end.in_doubt for end, _ in in_time])
        if late := len(ends) - len(in_time):
            tally.late += late
            tally.lost["settle"] += late
        return answers

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """As the store."""
        answers = await self._store.extend(leases, lease=lease)
        self._tally.lost["extend"] += answers.count(False)
        return answers

    async def cancel(
        self, ids: Sequence[model.MessageId], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """As the store."""
        answers = await self._store.cancel(ids, tenant=tenant)
        self._tally.moves[model.State.CANCELLED] += answers.count(model.CancelAnswer.CANCELLED)
        return answers
