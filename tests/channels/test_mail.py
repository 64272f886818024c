"""Notices by e-mail, through Carteiro itself and its sandbox; never in a loop."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.channels.mail import MailChannel
from carteiro.channels.open import open_channels
from carteiro.errors import HandedOver, NotDelivered
from carteiro.model import Tenant, TenantId
from carteiro.model.alerts import Notice, NoticeKind
from carteiro.observability import log
from carteiro.ports.alerts import Channel
from carteiro.runtime.polling import polls
from support.alerting import a_notice
from support.builders import ACME, BRASA
from support.working import TOO_LONG

SYSTEM = TenantId("carteiro-notices")
MAIL = {"mail_from": "carteiro@ops.example", "mail_to": "admin@sandbox.test"}


@pytest.fixture
def lines() -> Any:
    """The log, as a function."""
    stream = io.BytesIO()
    log.configure("info", stream)

    def read() -> list[dict[str, Any]]:
        log.flush()
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield read
    log.configure("off", io.BytesIO())


@asynccontextmanager
async def at_work(**notices: Any) -> AsyncIterator[Carteiro]:
    """An installation whose worker runs."""
    async with Carteiro.open("memory://", notices=MAIL | notices) as post:
        working = asyncio.create_task(post.run_worker())
        try:
            yield post
        finally:
            post.stop()
            await working


def _channel(post: Carteiro, name: str = "mail") -> Channel:
    return open_channels(post.settings, post.backend, post.accepting)[name]


def _now(tenant: str = ACME, *, old: bool = False) -> Notice:
    return a_notice(tenant, datetime.now(UTC) - old * timedelta(minutes=3))


async def _sent(channel: Channel, notice: Notice) -> None:
    """Sent, and asked about until the channel is done with it."""
    async for _ in polls(within=timedelta(seconds=TOO_LONG)):
        with suppress(HandedOver):
            return await channel.send(notice)
    raise AssertionError(notice)


async def _inbox(post: Carteiro) -> list[tuple[str, str]]:
    return [(each.to, each.subject) for each in await post.backend.inbox.list()]


async def test_notice_is_a_mail_to_the_administrator() -> None:
    """It is delivered when the mail is sent; repeated, it is the same mail."""
    async with at_work() as post:
        notice = _now()
        await _sent(_channel(post), notice)
        await _sent(_channel(post), notice)
        found = await _inbox(post)
        [mail] = await post.backend.inbox.list()
        [tenant] = await post.backend.tenants.find([SYSTEM])

    assert found == [("admin@sandbox.test", "[Carteiro] TenantFails acme: firing")]
    text = json.loads(mail.content)["text"]
    assert "What to do: Look." in text
    assert notice.id in text
    assert tenant == Tenant(SYSTEM, name="Carteiro", default_from="carteiro@ops.example")


async def test_notice_about_a_tenant_goes_to_its_contact() -> None:
    """Without the advice for administrators; a tenant without a contact gets no mail."""
    async with at_work() as post:
        await post.backend.tenants.define([Tenant(ACME, contact="ops@sandbox.test"), Tenant(BRASA)])
        for tenant in (ACME, BRASA):
            await _sent(_channel(post, "contact"), _now(tenant))
        [mail] = await post.backend.inbox.list()

    assert mail.to == "ops@sandbox.test"
    assert "TenantFails holds." in mail.content
    assert "Look." not in mail.content


async def test_contact_gets_beginning_and_end() -> None:
    """Acknowledgements and reminders are for operators."""
    async with at_work() as post:
        await post.backend.tenants.define([Tenant(ACME, contact="ops@sandbox.test")])
        for kind in ("firing", "reminder", "acknowledged", "resolved"):
            await _sent(
                _channel(post, "contact"), replace(_now(), id=f"ntc_{kind}", kind=NoticeKind(kind))
            )
        subjects = {subject for _, subject in await _inbox(post)}

    assert subjects == {
        "[Carteiro] acme: messages are not delivered",
        "[Carteiro] acme: the alert has ended",
    }


async def test_notice_about_the_system_tenant_goes_to_the_log(lines: Any) -> None:
    """A mail about mails that fail would fail, and make a notice."""
    async with at_work() as post:
        await _channel(post).send(_now(SYSTEM))
        found = await _inbox(post)

    assert found == []
    [line] = [each for each in lines() if each["event"] == "notice.not_delivered"]
    assert line["level"] == "error"
    assert "TenantFails carteiro-notices: firing" in line["notice"]


async def test_mail_that_fails_is_a_log_line(lines: Any) -> None:
    """E-mail is what is broken; the mail is not tried for ever."""
    async with at_work(mail_to="bounce-550@sandbox.test") as post:
        await _sent(_channel(post), _now())
        states = await post.backend.reading.states(tenant=SYSTEM)

    [line] = [each for each in lines() if each["event"] == "notice.not_delivered"]
    assert line["errorReason"] == "its mail ended as FAILED"
    assert states == {"FAILED": 1}


async def test_mail_that_is_not_sent_soon_is_a_log_line(
    lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker runs: for a while it is tried again, then people read it in the log. The mail is accepted once."""
    async with Carteiro.open("memory://", notices=MAIL) as post:
        channel = _channel(post)
        notice = _now(old=True)  # nobody looked for a while, as between two runs from cron
        for _ in range(2):
            with pytest.raises(HandedOver, match="not sent yet"):
                await channel.send(notice)
        monkeypatch.setattr("carteiro.channels.mail.SENT_WITHIN", timedelta(0))
        await channel.send(notice)
        states = await post.backend.reading.states()

    assert [each["event"] for each in lines()] == ["notice.not_delivered"]
    assert states == {"ENQUEUED": 1}


async def test_refused_mail_is_tried_again_and_then_a_log_line(lines: Any) -> None:
    """The domain of the sender is another tenant's: the settings have to change."""
    async with Carteiro.open("memory://", notices=MAIL, senders={"without_domains": "any"}) as post:
        await post.backend.tenants.define([Tenant(ACME, from_domains=("ops.example",))])
        with pytest.raises(NotDelivered, match="claimed"):
            await _channel(post).send(_now())
        await _channel(post).send(_now(old=True))

    reason = lines()[-1]["errorReason"]
    assert reason.startswith("its mail is refused: from: ")
    assert "claimed" in reason
    assert "notices.mail_tenant" in reason
    assert "FieldError" not in reason


async def test_mail_that_was_accepted_with_other_settings_is_the_same() -> None:
    """The sender was changed in between: the notice has its mail already."""
    async with at_work() as post:
        notice = _now()
        await _sent(_channel(post), notice)
        changed = replace(notice, condition="In other words.")
        await _sent(_channel(post), changed)

        assert len(await _inbox(post)) == 1


async def test_tenant_with_the_domain_of_the_sender_can_send_notices() -> None:
    """Its own default From stays."""
    own = Tenant(ACME, from_domains=("ops.example",), default_from="shop@ops.example")
    async with at_work() as post:
        await post.backend.tenants.define([own])
        channel = MailChannel(
            "mail",
            post.accepting,
            post.backend,
            tenant=ACME,
            sender=MAIL["mail_from"],
            to=MAIL["mail_to"],
        )
        await _sent(channel, _now(BRASA))
        found, kept = await _inbox(post), await post.backend.tenants.find([ACME])

    assert len(found) == 1
    assert kept == [own]


async def test_mails_about_one_tenant_are_bounded(
    lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its templates may begin and end to fail all day: nobody gets more than some mails, and others get theirs."""
    monkeypatch.setattr("carteiro.channels.mail.MOST_OF_A_TENANT", 2)
    async with at_work() as post:
        contacts = [Tenant(each, contact=f"{each}@sandbox.test") for each in (ACME, BRASA)]
        await post.backend.tenants.define(contacts)
        channel = _channel(post, "contact")
        many = [replace(_now(), id=f"ntc_{number}") for number in range(3)]
        for each in (many[0], *many, _now(BRASA)):
            await _sent(channel, each)
        found = sorted(to for to, _ in await _inbox(post))

    assert found == ["acme@sandbox.test"] * 2 + ["brasa@sandbox.test"]
    [line] = [each for each in lines() if each["event"] == "notice.not_delivered"]
    assert "2 mails about this tenant" in line["errorReason"]
