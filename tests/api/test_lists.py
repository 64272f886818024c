"""Lists of e-mails, and cancelling."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from carteiro.api.email_documents import Cancelled, EmailPage
from carteiro.app import Carteiro
from carteiro.model import EMAIL, Begun, MessageId, Start, State
from support.builders import a_claim_id
from support.http import KEY_OF_BRASA, a_client, answer_in, error_in, fields_in, sent
from support.library import work


async def listed(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """Ids of the e-mails that match."""
    document = answer_in(await client.get("/v1/emails", params=query))
    EmailPage.model_validate(document)
    return [each["outboxId"] for each in document["items"]]


# --- lists --------------------------------------------------------------------------------------


async def test_every_filter_counts(post: Carteiro) -> None:
    """Each finds the matching e-mail, and not the other."""
    ana = {"externalId": "ana", "email": "ana@example.com"}
    async with a_client(post) as client:
        wanted = await sent(client, externalId="nf-1", tags=["invoice"], recipient=ana)
        other = await sent(client, to="rui@example.com", externalId="nf-2", tags=["news"])

        for query in (
            {"to": "ana@EXAMPLE.com"},
            {"externalId": "nf-1"},
            {"recipientExternalId": "ana"},
            {"tag": "invoice"},
        ):
            assert await listed(client, **query) == [wanted["outboxId"]], query
        assert await listed(client) == [other["outboxId"], wanted["outboxId"]]
        assert await listed(client, status="ENQUEUED", to="rui@example.com") == [other["outboxId"]]
        assert await listed(client, status="SENT") == []
        assert await listed(client, createdAfter="2200-01-01T00:00:00Z") == []
        assert len(await listed(client, createdBefore="2200-01-01T00:00:00Z")) == 2


async def test_email_is_found_by_its_provider_id(post: Carteiro) -> None:
    """By its own tenant alone; `sesMessageId` shows the id of any provider."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        mail = (await sent(client, to="ok@sandbox.test"))["outboxId"]
        await sent(client)
        await work(post)
        given = answer_in(await client.get(f"/v1/emails/{mail}"))["sesMessageId"]

        assert await listed(client, providerId=given) == [mail]
        assert await listed(client, providerId=given, status="FAILED") == []
        assert await listed(client, providerId=f"{given}0") == []
        assert await listed(other, providerId=given) == []


async def test_pages_follow_each_other(post: Carteiro) -> None:
    """Newest first, without gaps or duplicates; the last page says so."""
    found: list[str] = []
    async with a_client(post) as client:
        newest_first = [(await sent(client))["outboxId"] for _ in range(5)][::-1]
        query: dict[str, Any] = {"limit": 2}
        while True:
            page = answer_in(await client.get("/v1/emails", params=query))
            found += [each["outboxId"] for each in page["items"]]
            if page["nextCursor"] is None:
                break
            query["cursor"] = page["nextCursor"]

    assert found == newest_first


async def test_list_shows_no_emails_of_other_tenants(post: Carteiro) -> None:
    """With any filter."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        await sent(client, externalId="nf-1", tags=["invoice"])

        for query in ({}, {"to": "ana@example.com"}, {"externalId": "nf-1"}, {"tag": "invoice"}):
            assert await listed(other, **query) == []


async def test_list_shows_no_bodies(post: Carteiro) -> None:
    """Content stays in the ledger; the fields of the log are shown."""
    async with a_client(post) as client:
        await sent(client, html="<p>segredo</p>", tags=["invoice"])
        response = await client.get("/v1/emails")

    assert "segredo" not in response.text
    assert response.json()["items"][0]["tags"] == ["invoice"]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("limit", "0"),
        ("limit", "201"),
        ("limit", "many"),
        ("status", "GONE"),
        ("cursor", "x"),
        ("cursor", "W10"),
        ("createdAfter", "yesterday"),
        ("createdAfter", "2026-01-01T00:00:00"),
        ("createdBefore", "17"),
        ("providerId", ""),
        ("colour", "blue"),
    ],
)
async def test_invalid_query_is_422(post: Carteiro, name: str, given: str) -> None:
    """The parameter is named, also an unknown one."""
    async with a_client(post) as client:
        response = await client.get("/v1/emails", params={name: given})

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == [name]


# --- cancelling ---------------------------------------------------------------------------------


async def cancelled(client: httpx.AsyncClient, answer: dict[str, Any]) -> httpx.Response:
    """The answer to a cancel."""
    return await client.post(f"/v1/emails/{answer['outboxId']}/cancel")


async def test_waiting_email_is_cancelled(post: Carteiro) -> None:
    """It is never sent, and a second cancel finds it finished."""
    async with a_client(post) as client:
        accepted = await sent(client, scheduledAt="2199-01-01T00:00:00Z")
        document = answer_in(await cancelled(client, accepted))
        again = await cancelled(client, accepted)

    Cancelled.model_validate(document)
    assert document == {
        "outboxId": accepted["outboxId"],
        "status": "CANCELLED",
        "cancelRequested": False,
    }
    error_in(again, 409, "CONFLICT")


async def test_email_in_flight_is_only_marked_as_cancelled(post: Carteiro) -> None:
    """202: it is not sent again, and may have been sent already."""
    async with a_client(post) as client:
        accepted = await sent(client)
        await in_flight(post, MessageId(accepted["outboxId"]))
        document = answer_in(await cancelled(client, accepted), 202)

    assert document["cancelRequested"] is True
    assert document["status"] == "SENT_ATTEMPT"


async def in_flight(post: Carteiro, message: MessageId) -> None:
    """Begin an attempt that does not end."""
    store = post.backend.store
    claimed = await store.claim(
        claim_id=a_claim_id(), kinds=[EMAIL], limit=1, lease=timedelta(minutes=1)
    )
    assert [job.lease.job for job in claimed.jobs] == [message]
    start = Start(claimed.jobs[0].lease, "sandbox", timedelta(minutes=1))
    assert isinstance((await store.declare([start]))[0], Begun)


async def test_finished_email_is_not_cancelled(post: Carteiro) -> None:
    async with a_client(post) as client:
        accepted = await sent(client, to="ok@sandbox.test")
        await work(post)
        response = await cancelled(client, accepted)

    error_in(response, 409, "CONFLICT")
    message = await post.backend.reading.message(MessageId(accepted["outboxId"]))
    assert message is not None
    assert message.state is State.SENT


async def test_email_of_another_tenant_is_not_cancelled(post: Carteiro) -> None:
    """It is not found, and goes on waiting."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        accepted = await sent(client)
        error_in(await cancelled(other, accepted), 404, "NOT_FOUND")
        shown = answer_in(await client.get(f"/v1/emails/{accepted['outboxId']}"))

    assert shown["status"] == "ENQUEUED"
