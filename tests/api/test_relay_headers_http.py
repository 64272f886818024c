"""Headers that control a relay are refused at every entry point."""

from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.errors import ConfigError, InvalidMessage, NotAccepted
from carteiro.model import Accepted
from support.builders import ACME
from support.http import (
    ADMIN_TOKEN,
    a_client,
    an_email,
    answer_in,
    error_in,
    fields_in,
    opened,
    sent,
    stored,
)
from support.library import work

STEERING = (
    "X-SMTPAPI",
    "x-msys-api",
    "X-MC-Template",
    "X-PM-Message-Stream",
    "X-SES-SOURCE-ARN",
    "X-Mailgun-Variables",
)
ALLOWED: dict[str, Any] = {"relay_headers": "X-PM-Tag x-ses-configuration-set"}


@pytest.mark.parametrize("name", STEERING)
async def test_relay_header_is_422(post: Carteiro, name: str) -> None:
    """Alone or among others, in one e-mail or in a batch; nothing is stored."""
    email = an_email(headers={"X-Campaign": "may", name: "[]"})

    async with a_client(post) as client:
        alone = await client.post("/v1/email/send", json=email)
        batch = await client.post("/v1/email/batch", json={"messages": [email]})

    assert fields_in(error_in(alone, 422, "INVALID_VALUE")) == [f"headers.{name}"]
    assert [each["status"] for each in answer_in(batch)["results"]] == [422]
    assert await stored(post) == 0


async def test_library_refuses_relay_headers(post: Carteiro) -> None:
    """One by one or many."""
    email = an_email(headers={"X-SMTPAPI": "{}"})

    with pytest.raises(InvalidMessage, match=r"X-SMTPAPI: .* delivery\.relay_headers"):
        await post.send(tenant=ACME, **email)
    [answer] = await post.send_many([{"tenant": ACME, **email}])

    assert isinstance(answer, NotAccepted)


async def test_edit_of_a_dead_letter_adds_no_relay_header(post: Carteiro) -> None:
    """An edit is validated like a new e-mail."""
    async with a_client(post) as client:
        message = (await sent(client, to="bounce-550@sandbox.test"))["outboxId"]
    await work(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        path = f"/admin/v1/dead-letters/{message}/edit"
        refused = await admin.post(path, json={"headers": {"X-PM-Tag": "a"}})
        edited = await admin.post(path, json={"headers": {"X-Tag": "a"}})

    assert fields_in(error_in(refused, 422, "INVALID_VALUE")) == ["headers.X-PM-Tag"]
    assert edited.is_success


async def test_named_relay_headers_can_be_allowed() -> None:
    """Those that the settings name, in any case, at every entry point; no other."""
    headers = {"x-pm-tag": "a", "X-SES-CONFIGURATION-SET": "b"}
    email = an_email(headers=headers)

    async with opened("memory://", delivery=ALLOWED) as post:
        async with a_client(post) as client:
            alone = await client.post("/v1/email/send", json=email)
            batch = await client.post("/v1/email/batch", json={"messages": [email]})
            other = an_email(headers={"X-PM-Message-Stream": "c"})
            refused = await client.post("/v1/email/send", json=other)
            message = (await sent(client, to="bounce-550@sandbox.test"))["outboxId"]
        library = await post.send(tenant=ACME, **email)
        await work(post)
        async with a_client(post, key=ADMIN_TOKEN) as admin:
            path = f"/admin/v1/dead-letters/{message}/edit"
            edited = await admin.post(path, json={"headers": headers})

    assert alone.status_code == 202
    assert [each["status"] for each in answer_in(batch)["results"]] == [202]
    assert isinstance(library, Accepted)
    assert edited.is_success
    error_in(refused, 422, "INVALID_VALUE")


async def test_only_relay_headers_can_be_allowed() -> None:
    """A setting without effect is refused."""
    with pytest.raises(ConfigError, match="relay_headers"):
        async with Carteiro.open(
            "memory://", delivery={"relay_headers": "X-PM-Tag, X-PM-Metadata"}
        ):
            pass
