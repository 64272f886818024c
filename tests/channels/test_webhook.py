"""Notices by webhook, over real connections: signed, repeated under one id, never redirected."""

import base64
import hmac
from hashlib import sha256

import pytest

from carteiro.channels.webhook import WebhookChannel
from carteiro.errors import FeedbackRefused, NotDelivered
from carteiro.policy.notices import trial_notice
from carteiro.providers.resend.feedback import Signed, Webhooks
from support.alerting import NOON, a_notice
from support.receiving import Received, a_receiver

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
UNREACHABLE = "http://127.0.0.1:1/told"


def _verified(request: Received, secret: str = SECRET) -> str:
    """The id, as a receiver verifies it with a library of the scheme: ours for what it hears from others."""
    return Webhooks(secret).verified_id(Signed.of(request.headers), request.body)


async def test_webhook_is_signed_by_the_scheme() -> None:
    """Over id, time and body; a receiver with the secret verifies it, one with another secret refuses it."""
    notice = a_notice()
    async with a_receiver() as receiver:
        await WebhookChannel(receiver.url, KEY, clock=lambda: 1_700_000_000.9).send(notice)
    [request] = receiver.received

    signed = b"%s.1700000000.%s" % (notice.id.encode(), request.body)
    expected = base64.b64encode(hmac.digest(KEY, signed, sha256)).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"
    assert request.headers["webhook-timestamp"] == "1700000000"
    assert _verified(request) == notice.id
    with pytest.raises(FeedbackRefused):
        _verified(request, "whsec_b3RoZXI=")


async def test_document_says_what_happened() -> None:
    notice = a_notice()
    async with a_receiver() as receiver:
        await WebhookChannel(receiver.url, KEY).send(notice)
    [request] = receiver.received

    assert (request.path, request.headers["content-type"]) == ("/told", "application/json")
    assert request.document["type"] == "alert.firing"
    assert request.document["timestamp"] == "2026-10-01T12:00:00.000Z"
    told = request.document["data"]
    assert (told["id"], told["alert"], told["subject"]) == (notice.id, "TenantFails", "acme")
    assert (told["companyId"], told["severity"], told["value"]) == ("acme", "warning", 11)


async def test_repetition_has_the_same_id_and_body() -> None:
    """So the receiver drops it."""
    async with a_receiver(500) as receiver:
        channel = WebhookChannel(receiver.url, KEY)
        with pytest.raises(NotDelivered, match="it answers 500"):
            await channel.send(a_notice())
        await channel.send(a_notice())
    first, second = receiver.received

    assert _verified(first) == _verified(second)
    assert first.body == second.body


async def test_redirect_is_an_error_and_not_followed() -> None:
    """Only the URL of the settings is trusted, not one that it names."""
    async with a_receiver() as other, a_receiver(302) as receiver:
        receiver.location = other.url
        with pytest.raises(NotDelivered, match="it answers 302"):
            await WebhookChannel(receiver.url, KEY).send(a_notice())

    assert other.received == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with a_receiver() as receiver:
        await WebhookChannel(receiver.url, KEY).send(trial_notice("ana", NOON))

    assert len(receiver.received) == 1


async def test_unreachable_and_broken_receivers_are_errors() -> None:
    async with a_receiver(0) as receiver:
        for url in (UNREACHABLE, receiver.url):
            with pytest.raises(NotDelivered):
                await WebhookChannel(url, KEY).send(a_notice())


async def test_firing_alerts_are_not_repeated() -> None:
    async with a_receiver() as receiver:
        await WebhookChannel(receiver.url, KEY).repeat([a_notice()])

    assert receiver.received == []
