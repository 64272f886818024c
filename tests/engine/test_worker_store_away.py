"""The worker with an unreachable store: everything is repeated until it is stored."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from carteiro.engine import storing
from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Pool
from carteiro.model import (
    Begun,
    Claimed,
    ClaimId,
    End,
    Late,
    Refused,
    RefusedWhy,
    Settled,
    Start,
    State,
    Taken,
)
from carteiro.ports import Handover, Parcel
from support.builders import ACME, TASK, a_task
from support.steps import accepted
from support.working import Away, Through, a_kind, an_office, logged

pytestmark = pytest.mark.usefixtures("impatient")


async def test_outcome_is_settled_until_it_is_stored() -> None:
    """It is delivered once, for any length of the outage."""
    async with an_office() as office:
        message = await office.post()
        with logged() as lines:
            await office.work(store=Away(office.backend.store, settle=4))

        assert await office.state(message) is State.SENT
        assert await office.deliveries(message) == 1
        failed = [line for line in lines if line["event"] == "store.failed"]
        assert [line["operation"] for line in failed] == ["settle"] * 4
        assert [line["nextRetryDelay"] for line in failed] == [2, 4, 4, 4]


async def test_failed_declare_is_repeated() -> None:
    """Nothing is sent before it is declared, and the message is not charged for the store."""
    async with an_office() as office:
        message = await office.post()

        await office.work(store=Away(office.backend.store, declare=7))

        assert await office.story(message) == [
            *("ENQUEUED", "RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT")
        ]
        row = await office.row(message)
        assert (row.attempts, row.charged, row.in_doubt) == (1, 0, 0)


async def test_lost_answers_do_no_harm() -> None:
    """A declare and a settle that were stored without an answer are repeated, and write nothing."""

    class Mute(Through):
        told = 0

        async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
            answers = await super().declare(starts)
            self._lose()
            return answers

        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            answers = await super().settle(ends)
            self._lose()
            return answers

        def _lose(self) -> None:
            self.told += 1
            if self.told % 2:
                raise StoreUnavailable("connection reset")

    async with an_office() as office:
        message = await office.post()

        await office.work(store=Mute(office.backend.store))

        assert await office.story(message) == [
            *("ENQUEUED", "RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT")
        ]
        assert await office.deliveries(message) == 1


async def test_failed_claim_is_repeated() -> None:
    """With growing delays, and from the first one after an answer."""
    async with an_office() as office:
        message = await office.post()
        with logged() as lines:
            await office.work(store=Away(office.backend.store, claim=3))

        assert await office.state(message) is State.SENT
        failed = [line for line in lines if line["event"] == "store.failed"]
        assert [line["nextRetryDelay"] for line in failed] == [2, 4, 4]
        assert {line["operation"] for line in failed} == {"claim"}


async def test_delays_start_again_after_an_answer() -> None:
    """They grow within one outage, and start again with the next."""

    class Moody(Through):
        calls = 0

        async def claim(self, **asked: Any) -> Claimed:
            self.calls += 1
            if self.calls in {1, 3}:
                raise StoreUnavailable("moody")
            return await super().claim(**asked)

    async with an_office() as office:
        await office.post()
        with logged() as lines:
            await office.work(store=Moody(office.backend.store))

        waits = [line["nextRetryDelay"] for line in lines if line["event"] == "store.failed"]
        assert waits == [2, 2]


async def test_job_that_is_not_due_is_released_until_it_is() -> None:
    """A stale entry of the queue: the ledger has the time, and the claim does not count."""

    class Stale(Through):
        is_first = True

        async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
            if not self.is_first:
                return await super().declare(starts)
            self.is_first = False
            return [Refused(RefusedWhy.NOT_DUE, timedelta(seconds=3))]

    async with an_office() as office:
        message = await office.post()
        before = office.clock()

        await office.work(store=Stale(office.backend.store))

        assert await office.story(message) == [
            *("ENQUEUED", "RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT")
        ]
        assert office.clock() - before == 3000


async def test_unexpected_error_does_not_end_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is logged, and the next claim may succeed: other pools must not stop for it."""
    monkeypatch.setattr(storing, "FIRST_WAIT_S", 0.001)

    class Broken(Through):
        claims = 0

        async def claim(self, **asked: Any) -> Claimed:
            self.claims += 1
            if self.claims == 1:
                raise ZeroDivisionError
            return await super().claim(**asked)

    async with an_office() as office:
        message = await office.post()

        with logged() as lines:
            await office.work(store=Broken(office.backend.store))

        assert await office.state(message) is State.SENT
        assert [line["errorType"] for line in lines if line["event"] == "store.failed"] == [
            "ZeroDivisionError"
        ]


async def test_cancel_outlives_the_worker_of_a_task() -> None:
    """The next worker carries it out: the task does not run again."""
    ran = []

    async def run(parcel: Parcel, _: Handover) -> Taken:
        ran.append(parcel.message)
        return Taken("")

    async with an_office() as office:
        [message] = await accepted(office.backend.store, a_task())
        await office.backend.store.claim(
            claim_id=ClaimId("gone"), kinds=[TASK], limit=1, lease=timedelta(seconds=1)
        )
        await office.backend.store.cancel([message], tenant=ACME)
        office.clock.advance(timedelta(seconds=2))

        await office.work(Pool("task", 1, (a_kind(run),)))

        assert (await office.state(message), ran) == (State.CANCELLED, [])
