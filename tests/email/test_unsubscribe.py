"""The link to unsubscribe in mails as servers get them, through every provider that hands mail over."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from email import message_from_bytes
from email.policy import default
from typing import Any, TypeAlias

import pytest

from carteiro.model import UnsubscribeLink
from carteiro.policy.suppression import key_of
from support.builders import ACME
from support.http import opened
from support.library import work
from support.resend_twin import ResendTwin, serving
from support.sending import SENDER
from support.ses_twin import KEY_ID, REGION, SECRET, a_ses_twin
from support.smtp_server import HOST, an_smtp_server
from support.unsubscribing import OFFER, a_mail, a_newsletter, headers_of, offering, token_in

Mailbox: TypeAlias = Callable[[], list[dict[str, str]]]  # the headers of each mail
Server: TypeAlias = Callable[[], AbstractAsyncContextManager[tuple[dict[str, Any], Mailbox]]]
TO = "ana@example.com"


def _read(raw: bytes) -> dict[str, str]:
    return dict(message_from_bytes(raw, policy=default).items())


@asynccontextmanager
async def _a_relay() -> AsyncIterator[tuple[dict[str, Any], Mailbox]]:
    async with an_smtp_server() as server:
        options = {"host": HOST, "port": server.port, "tls": "none", "default_from": SENDER}
        yield options, lambda: [_read(each.content) for each in server.mails]


@asynccontextmanager
async def _ses() -> AsyncIterator[tuple[dict[str, Any], Mailbox]]:
    async with a_ses_twin() as twin:
        keys = {"access_key_id": KEY_ID, "secret_access_key": "env:A_KEY"}
        options = {"region": REGION, "endpoint_url": twin.url, "default_from": SENDER}
        yield options | keys, lambda: [_read(each.raw) for each in twin.mails]


@asynccontextmanager
async def _resend() -> AsyncIterator[tuple[dict[str, Any], Mailbox]]:
    async with serving(ResendTwin(api_key=SECRET)) as twin:
        options = {"url": twin.url, "api_key": "env:A_KEY", "default_from": SENDER}
        yield options, lambda: [each.letter["headers"] for each in twin.deliveries]


@pytest.mark.parametrize(
    ("provider", "server"), [("smtp", _a_relay), ("ses", _ses), ("resend", _resend)]
)
async def test_mail_has_both_headers(
    monkeypatch: pytest.MonkeyPatch, provider: str, server: Server
) -> None:
    """As they were stored: every attempt, and every provider of a chain, sends the same link."""
    monkeypatch.setenv("A_KEY", SECRET)
    async with server() as (options, mailbox):
        settings: dict[str, Any] = {"provider": provider, provider: options}
        async with opened("memory://", **offering(monkeypatch), **settings) as post:
            await a_newsletter(post)
            message = await a_mail(post, TO, headers={"X-Own": "kept"})
            await work(post)
            stored = await headers_of(post, message)

    [headers] = mailbox()
    assert headers.items() >= stored.items()
    assert headers["X-Own"] == "kept"
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = OFFER.opened(token_in(headers))
    assert link == UnsubscribeLink(ACME, message, key_of(ACME, TO))
