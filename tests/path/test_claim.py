"""Claiming: each call under an id of its own."""

from datetime import timedelta

from carteiro.model import EMAIL
from carteiro.path.claim import claim
from support.working import an_office

LEASE = timedelta(seconds=30)


async def test_a_claim_leases_no_more_than_asked_for() -> None:
    """What a worker has no slot for stays for others."""
    async with an_office() as office:
        for _ in range(3):
            await office.post()

        claimed = await claim(office.backend.store, kinds=[EMAIL], limit=2, lease=LEASE)
        rest = await claim(office.backend.store, kinds=[EMAIL], limit=2, lease=LEASE)

    assert (len(claimed.jobs), len(rest.jobs)) == (2, 1)


async def test_every_claim_has_an_id_of_its_own() -> None:
    """The jobs of one call share it, those of another never have it: also in a store that was wiped."""
    async with an_office() as office:
        for _ in range(4):
            await office.post()

        claims = [
            await claim(office.backend.store, kinds=[EMAIL], limit=2, lease=LEASE) for _ in range(2)
        ]

    ids = [{job.lease.claim for job in claimed.jobs} for claimed in claims]
    assert [len(each) for each in ids] == [1, 1]
    assert ids[0] != ids[1]


async def test_without_work_it_says_how_long_to_sleep() -> None:
    """Until the next retry is due, or for as long as nothing happens."""
    async with an_office() as office:
        nothing = await claim(office.backend.store, kinds=[EMAIL], limit=1, lease=LEASE)
        await office.post(scheduledAt=office.clock.at(timedelta(seconds=7)).isoformat())
        later = await claim(office.backend.store, kinds=[EMAIL], limit=1, lease=LEASE)

    assert (nothing.jobs, nothing.idle_for) == ([], None)
    assert (later.jobs, later.idle_for) == ([], timedelta(seconds=7))
