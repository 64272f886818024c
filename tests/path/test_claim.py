"""Claiming: each call has its own id; failed claims are undone."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from carteiro.errors import StoreUnavailable
from carteiro.model import EMAIL, ZERO, Claimed, ClaimId
from carteiro.path.claim import Claims
from carteiro.ports import Store
from support.clock import past
from support.working import A_MOMENT, Through, an_office

LEASE = timedelta(seconds=30)


async def test_claim_leases_no_more_than_requested() -> None:
    """The rest stays for others."""
    async with an_office() as office:
        for _ in range(3):
            await office.post()

        claimed = await Claims(office.backend.store).claim(kinds=[EMAIL], limit=2, lease=LEASE)
        rest = await Claims(office.backend.store).claim(kinds=[EMAIL], limit=2, lease=LEASE)

    assert (len(claimed.jobs), len(rest.jobs)) == (2, 1)


async def test_every_claim_has_its_own_id() -> None:
    """Its jobs share it, and no other claim ever has it: also in a store that was wiped."""
    async with an_office() as office:
        for _ in range(4):
            await office.post()

        worker = Claims(office.backend.store)
        claims = [await worker.claim(kinds=[EMAIL], limit=2, lease=LEASE) for _ in range(2)]

    ids = [{job.lease.claim for job in claimed.jobs} for claimed in claims]
    assert [len(each) for each in ids] == [1, 1]
    assert ids[0] != ids[1]


async def test_claim_without_work_has_a_sleep_time() -> None:
    """Until the next retry is due, or until something happens."""
    async with an_office() as office:
        nothing = await Claims(office.backend.store).claim(kinds=[EMAIL], limit=1, lease=LEASE)
        await office.post(scheduledAt=office.clock.at(timedelta(seconds=7)).isoformat())
        later = await Claims(office.backend.store).claim(kinds=[EMAIL], limit=1, lease=LEASE)

    assert (nothing.jobs, nothing.idle_for) == ([], None)
    assert (later.jobs, later.idle_for) == ([], timedelta(seconds=7))


# --- claims that fail ----------------------------------------------------------------------------


class LosesAnswers(Through):
    """A store that commits the first claims and loses the answers; the first undos fail, too."""

    def __init__(
        self, store: Store, *, claims: int, undoings: int = 0, commits: bool = True
    ) -> None:
        super().__init__(store)
        self.commits = commits
        self.claims = claims
        self.undoings = undoings
        self.undone: list[list[ClaimId]] = []

    async def claim(self, **asked: Any) -> Claimed:
        """Claim, and lose the answer."""
        self.claims -= 1
        if self.claims < 0:
            return await super().claim(**asked)
        if self.commits:
            await super().claim(**asked)
        raise StoreUnavailable("the connection broke")

    async def undo_claims(self, claims: Sequence[ClaimId]) -> None:
        """Fail, or pass it on."""
        self.undoings -= 1
        if self.undoings >= 0:
            raise StoreUnavailable("the connection broke")
        self.undone.append(list(claims))
        await super().undo_claims(claims)


async def _asked_again(claims: Claims) -> Claimed:
    """Repeat like a worker until there is an answer."""
    while True:
        try:
            if claims.has_failed:
                await claims.recover()
            return await claims.claim(kinds=[EMAIL], limit=2, lease=LEASE)
        except StoreUnavailable:
            continue


@pytest.mark.parametrize("undoings", [0, 2])
async def test_claim_without_an_answer_is_undone_before_the_next(undoings: int) -> None:
    """Its jobs are claimed again at once, without a counted crash."""
    async with an_office() as office:
        message = await office.post()
        store = LosesAnswers(office.backend.store, claims=4, undoings=undoings)

        [job] = (await _asked_again(Claims(store))).jobs

    assert (job.lease.job, job.claims) == (message, 1)


async def test_failed_claim_is_undone_twice_and_then_forgotten() -> None:
    """The store may have committed it after the first undo."""
    async with an_office() as office:
        store = LosesAnswers(office.backend.store, claims=1)
        claims = Claims(store)
        await _asked_again(claims)
        for _ in range(3):
            await claims.claim(kinds=[EMAIL], limit=2, lease=LEASE)
            await claims.undo_failed()
            await claims.undo_again()

    assert len(store.undone) == 2
    assert store.undone[0] == store.undone[1]


async def test_second_undo_that_fails_is_repeated() -> None:
    """Before the next claim."""
    async with an_office() as office:
        store = LosesAnswers(office.backend.store, claims=1)
        claims = Claims(store)
        await _asked_again(claims)
        store.undoings = 1
        with pytest.raises(StoreUnavailable):
            await claims.undo_again()
        await _asked_again(claims)

    assert len(store.undone) == 2


async def test_successful_claims_undo_nothing() -> None:
    """No call is made for it."""
    async with an_office() as office:
        store = LosesAnswers(office.backend.store, claims=0)
        claims = Claims(store)
        for _ in range(3):
            await claims.claim(kinds=[EMAIL], limit=2, lease=LEASE)
            await claims.undo_failed()
            await claims.undo_again()

    assert store.undone == []


async def test_remembered_failed_claims_are_bounded() -> None:
    """After hours of failures only the last ones are undone: the leases of the first ones ended long ago."""
    async with an_office() as office:
        store = LosesAnswers(office.backend.store, claims=300)
        claims = Claims(store)
        await _asked_again(claims)
        await claims.undo_again()

    *once, last = [len(each) for each in store.undone]
    assert once == [1] * 300
    assert last == 100


@pytest.mark.parametrize("is_long", [True, False])
async def test_workers_can_extend_their_leases_after_a_long_failure(
    is_long: bool,
) -> None:
    """Their leases may have ended meanwhile; after a short failure there is no delay."""
    async with an_office() as office:
        await office.post()
        owner = office.backend.store
        [job] = (await Claims(owner).claim(kinds=[EMAIL], limit=1, lease=LEASE)).jobs
        office.clock.advance(past(LEASE))
        claims = Claims(
            LosesAnswers(owner, claims=1, commits=False),
            most_failing=ZERO if is_long else LEASE,
            grace=timedelta(seconds=A_MOMENT),
        )

        claiming = asyncio.create_task(_asked_again(claims))
        if not is_long:
            await claiming
        extended = await owner.extend([job.lease], lease=LEASE)
        claimed = await claiming

        assert extended == [is_long]
        assert len(claimed.jobs) == (not is_long)
