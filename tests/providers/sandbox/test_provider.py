"""The sandbox: each address behaves as documented."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from carteiro.email.message import make_email, restore_email
from carteiro.errors import StoreUnavailable
from carteiro.model import (
    Category,
    Deferred,
    InboxMail,
    MessageId,
    Outcome,
    Rejected,
    Taken,
    TenantId,
)
from carteiro.ports import Handover, Parcel
from carteiro.ports.inbox import Letterbox
from carteiro.providers.sandbox.provider import DOMAIN, REPLIES, SandboxProvider
from support.working import A_MOMENT, a_parcel

LONG = timedelta(seconds=30)


class Box:
    """An inbox that remembers its mails, and their lists."""

    def __init__(self) -> None:
        self.lists: list[list[InboxMail]] = []

    @property
    def mails(self) -> list[InboxMail]:
        """All kept mails."""
        return [mail for mails in self.lists for mail in mails]

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        self.lists.append(list(mails))

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """All mails."""
        asked = [mail for mail in self.mails if message in {None, mail.message}]
        return [mail for mail in asked if tenant in {None, mail.tenant}][:limit]


def to(local: str, *, attempt: int = 1, domain: str = DOMAIN, **fields: Any) -> Parcel:
    """An e-mail to that address."""
    given = {"to": f"{local}@{domain}", "subject": "s", "html": "<p>b</p>"} | fields
    return a_parcel(make_email(given), attempt=attempt)


async def played(parcel: Parcel, box: Letterbox | None = None, *, seed: int = 0) -> Outcome:
    """The answer of the sandbox."""
    return await SandboxProvider(box or Box(), seed=seed).deliver(parcel, Handover(LONG))


@pytest.mark.parametrize(
    "parcel",
    [
        to("ok"),
        to("OK"),
        to("throttle-0"),
        to("throttle-2", attempt=3),
        to("greylist", attempt=3),
        to("slow-0"),
        to("slow-0.001"),
        to("random-0"),
        to("anybody"),
        to("bounce-550", domain="example.com"),
        to("lost-reply", domain="sandbox.test.example.com"),
    ],
    ids=lambda parcel: f"{parcel.content.to} {parcel.attempt}",
)
async def test_ordinary_mail_is_accepted(parcel: Parcel) -> None:
    """One delivery; the id names message and attempt."""
    box = Box()

    outcome = await played(parcel, box)

    assert outcome == Taken(f"sandbox-{parcel.message}-{parcel.attempt}")
    [mail] = box.mails
    assert (mail.message, mail.tenant, mail.to) == (
        parcel.message,
        parcel.tenant,
        parcel.content.to,
    )
    assert restore_email(mail.content) == parcel.content


@pytest.mark.parametrize(
    ("local", "attempt", "code", "category"),
    [
        ("throttle-2", 1, "SES_THROTTLING", Category.QUOTA_ERROR),
        ("throttle-2", 2, "SES_THROTTLING", Category.QUOTA_ERROR),
        ("greylist", 1, "451", Category.TRANSIENT_ERROR),
        ("greylist", 2, "451", Category.TRANSIENT_ERROR),
        ("full-552", 9, "552", Category.QUOTA_ERROR),
        ("random-100", 1, "421", Category.TRANSIENT_ERROR),
    ],
)
async def test_mail_is_deferred(local: str, attempt: int, code: str, category: Category) -> None:
    """Retryable, with the code that a real server would give; nothing is delivered."""
    box = Box()

    outcome = await played(to(local, attempt=attempt), box)

    assert isinstance(outcome, Deferred)
    assert (outcome.failure.code, outcome.failure.category) == (code, category)
    assert box.mails == []


@pytest.mark.parametrize(
    ("local", "code", "original"),
    [
        ("bounce-550", "550", "5.1.1"),
        ("reject", "SES_MESSAGE_REJECTED", "MessageRejected"),
    ],
)
async def test_mail_is_rejected(local: str, code: str, original: str) -> None:
    """For good; nothing is delivered."""
    box = Box()

    outcome = await played(to(local), box)

    assert isinstance(outcome, Rejected)
    assert (outcome.failure.code, outcome.failure.original_code) == (code, original)
    assert box.mails == []


@pytest.mark.parametrize(("local", "deliveries"), [("timeout", 0), ("lost-reply", 1)])
async def test_mail_gets_no_answer(local: str, deliveries: int) -> None:
    """Before the hand-over nothing was delivered; after it the mail is there without an answer."""
    box, handover = Box(), Handover(LONG)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(A_MOMENT):
            await SandboxProvider(box).deliver(to(local), handover)

    assert handover.begun is bool(deliveries)
    assert len(box.mails) == deliveries


async def test_random_failures_have_their_share_and_seed() -> None:
    """The same seed gives the same sequence of outcomes, with any messages."""

    async def row(seed: int) -> list[bool]:
        provider = SandboxProvider(Box(), seed=seed)
        parcels = [to("random-30") for _ in range(400)]
        outcomes = [await provider.deliver(parcel, Handover(LONG)) for parcel in parcels]
        return [isinstance(outcome, Deferred) for outcome in outcomes]

    first, again, other = await row(0), await row(0), await row(1)

    assert first == again != other
    assert 0.2 < sum(first) / len(first) < 0.4


async def test_hand_over_has_begun_when_the_inbox_gets_the_mail() -> None:
    """Begun after it, a crash in between would be a delivery without a doubt."""
    handover = Handover(LONG)

    class Watching(Box):
        async def keep(self, mails: Sequence[InboxMail]) -> None:
            assert handover.begun
            await super().keep(mails)

    await SandboxProvider(Watching()).deliver(to("ok"), handover)

    assert handover.begun


async def test_failing_inbox_raises_in_the_caller() -> None:
    """After the hand-over began: the caller is in doubt."""

    class Broken(Box):
        async def keep(self, mails: Sequence[InboxMail]) -> None:
            raise StoreUnavailable(f"no room for {len(mails)}")

    handover = Handover(LONG)

    with pytest.raises(StoreUnavailable):
        await SandboxProvider(Broken()).deliver(to("ok"), handover)
    assert handover.begun


async def test_simultaneous_deliveries_are_stored_in_few_batches() -> None:
    """One commit for many mails."""
    box = Box()
    sandbox = SandboxProvider(box)

    await asyncio.gather(*[sandbox.deliver(to("ok"), Handover(LONG)) for _ in range(50)])

    assert len(box.mails) == 50
    assert len(box.lists) <= 2


def test_every_reply_is_described() -> None:
    """The reference page is generated from this list."""
    assert all(REPLIES.values())
    assert set(REPLIES) == {name.strip() for name in REPLIES}
