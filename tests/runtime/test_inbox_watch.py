"""Waits for mails cost the store little: one reader for all, only while somebody waits."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from carteiro.errors import StoreUnavailable
from carteiro.model import InboxEntry, InboxFilter, MessageId, Page, TenantId
from carteiro.policy.inbox import is_wanted
from carteiro.ports import Inbox
from carteiro.runtime import inbox_watch
from carteiro.runtime.inbox_watch import MOST_OF_ALL, MOST_OF_ONE, InboxWatch
from support.builders import ACME, BRASA

LONG = timedelta(minutes=10)
NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Counted:
    """An inbox that counts what is asked of it."""

    def __init__(self) -> None:
        self.mails: list[InboxEntry] = []
        self.asked: list[set[TenantId]] = []
        self.finds: list[InboxFilter] = []
        self.failure: Exception | None = None

    def keep(self, subject: str, *, tenant: TenantId = ACME) -> None:
        at = NOW + timedelta(seconds=len(self.mails))
        number = str(len(self.mails))
        self.mails.append(InboxEntry(MessageId(number), tenant, "a@b.example", subject, number, at))

    async def find(self, wanted: InboxFilter, **_: object) -> Page[InboxEntry]:
        self.finds.append(wanted)
        if self.failure is not None:
            raise self.failure
        return Page([each for each in reversed(self.mails) if is_wanted(each, wanted)], None)

    async def newest(self, tenants: Collection[TenantId]) -> Mapping[TenantId, datetime]:
        self.asked.append({*tenants})
        if self.failure is not None:
            raise self.failure
        return {each.tenant: each.at for each in self.mails if each.tenant in tenants}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader never sleeps; nobody looks by themselves."""
    monkeypatch.setattr(inbox_watch, "_EVERY_S", 0)
    monkeypatch.setattr(inbox_watch, "_LOOKS_EVERY_S", 600)


def a_watch(inbox: Counted) -> InboxWatch:
    return InboxWatch(cast("Inbox", inbox))


async def until(condition: Any) -> None:
    """Let others run until it is so."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


async def test_one_reader_serves_all_who_wait() -> None:
    """One question for all tenants; only those with a match look again; nobody asks when nobody waits."""
    inbox = Counted()
    watch = a_watch(inbox)
    waits = [
        asyncio.create_task(
            watch.wait(InboxFilter(tenant=tenant, subject=f"code {number}"), limit=1, within=LONG)
        )
        for tenant in (ACME, BRASA)
        for number in range(5)
    ]
    await until(lambda: len(inbox.finds) == 10)
    await until(lambda: inbox.asked and inbox.asked[-1] == {ACME, BRASA})

    inbox.keep("code 3")
    done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    asked = len(inbox.asked)
    await until(lambda: len(inbox.asked) > asked + 5)

    assert [each.result().rows[0].subject for each in done] == ["code 3"]
    assert (
        len(inbox.finds) == 12
    )  # the new mails once for all, and one look of the one that matched
    assert watch.waiting == 9
    watch.close()
    assert [(await each).rows for each in waits if each not in done] == [[]] * 9
    asked = len(inbox.asked)
    for _ in range(20):
        await asyncio.sleep(0)
    assert (watch.waiting, len(inbox.asked)) == (0, asked)


async def test_store_that_fails_does_not_end_the_reader() -> None:
    """A caller that looks gets the error, and gives the place back; the others go on when the store is back."""
    inbox = Counted()
    watch = a_watch(inbox)
    waiting = asyncio.create_task(watch.wait(InboxFilter(tenant=ACME), limit=1, within=LONG))
    await until(lambda: inbox.asked)
    for failure in (StoreUnavailable("down"), ZeroDivisionError()):
        inbox.failure = failure
        with pytest.raises(type(failure)):
            await watch.wait(InboxFilter(tenant=BRASA), limit=1, within=LONG)
        assert watch.waiting == 1
        asked = len(inbox.asked)
        await until(lambda asked=asked: len(inbox.asked) > asked)
    inbox.failure = None
    inbox.keep("Olá")

    assert len((await asyncio.wait_for(waiting, 60)).rows) == 1


async def test_places_are_limited_for_a_tenant_and_for_all() -> None:
    """A cancelled wait gives its place back; nobody waits for mails of all tenants."""
    watch = a_watch(Counted())
    tenants = [TenantId(f"tenant-{number}") for number in range(MOST_OF_ALL // MOST_OF_ONE)]
    waits = [
        asyncio.create_task(watch.wait(InboxFilter(tenant=each), limit=1, within=LONG))
        for each in tenants
        for _ in range(MOST_OF_ONE)
    ]
    assert not watch.is_full_for(ACME)
    await until(lambda: watch.waiting == MOST_OF_ALL)
    assert watch.is_full_for(tenants[0])
    assert watch.is_full_for(ACME)

    waits[0].cancel()
    await until(lambda: watch.waiting < MOST_OF_ALL)
    assert not watch.is_full_for(tenants[0])
    assert not watch.is_full_for(ACME)
    assert watch.is_full_for(tenants[1])
    watch.close()
    await asyncio.gather(*waits[1:])
    with pytest.raises(ValueError, match="all tenants"):
        await watch.wait(InboxFilter(), limit=1, within=LONG)
