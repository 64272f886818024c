"""Installations that offer to unsubscribe with one click, and links in their mails."""

import base64
import re
from typing import Any

from carteiro.app import Carteiro
from carteiro.email.message import restore_email
from carteiro.model import MessageId, NewTemplate, TenantId
from carteiro.policy.unsubscribe import OneClick
from support.builders import ACME

URL = "https://mail.example.com"
SECRET, OLD_SECRET = b"s" * 32, b"o" * 32
OFFER = OneClick(URL, (SECRET,))
_LINK = re.compile(r"<(https://[^>]+)>")


def written(*secrets: bytes) -> str:
    """The secrets as the operator writes them."""
    return " ".join(f"whsec_{base64.b64encode(each).decode()}" for each in secrets)


def offering(monkeypatch: Any, *secrets: bytes, url: str = URL) -> dict[str, Any]:
    """Settings of an installation with the offer."""
    monkeypatch.setenv("UNSUBSCRIBE_SECRETS", written(*secrets or (SECRET,)))
    return {"unsubscribe": {"url": url, "secrets": "env:UNSUBSCRIBE_SECRETS"}}


async def a_newsletter(post: Carteiro, *, tenant: TenantId = ACME, type: str = "news") -> None:
    """Define a template that offers it."""
    new = NewTemplate(tenant, type, "News {{ n }}", "<p>News</p>", one_click_unsubscribe=True)
    await post.backend.templates.define(new)


async def a_mail(post: Carteiro, to: str = "ana@example.com", **fields: Any) -> MessageId:
    """Accept a newsletter."""
    template = {"type": "news", "variables": {"n": 1}}
    answer = await post.send(**({"tenant": ACME, "to": to, "template": template} | fields))
    return answer.id


async def headers_of(post: Carteiro, message: MessageId) -> dict[str, str]:
    """The headers of an accepted e-mail."""
    stored = await post.backend.reading.message(message)
    assert stored is not None
    assert stored.content is not None
    return restore_email(stored.content).headers


def token_in(headers: dict[str, str]) -> str:
    """The last part of the link in the headers."""
    found = _LINK.fullmatch(headers["List-Unsubscribe"])
    assert found is not None
    return found[1].rpartition("/")[2]


async def token_of(post: Carteiro, message: MessageId) -> str:
    """The last part of the link of an accepted e-mail."""
    return token_in(await headers_of(post, message))
