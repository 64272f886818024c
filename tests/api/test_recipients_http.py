"""Recipients over HTTP: listed, deleted, erased."""

from typing import Any

import httpx
import pytest

from carteiro.api.erasing import ErasedDocument
from carteiro.api.recipients import RecipientPage, RecipientView
from carteiro.app import Carteiro
from support.builders import ACME
from support.http import ADMIN_TOKEN, KEY_OF_ACME, a_client, answer_in, error_in, sent

ANA = {"externalId": "ana", "email": "ana@example.com", "nome": "Ana Souza"}
RUI = {"externalId": "rui", "email": "rui@example.com", "nome": "Rui Lima"}

BOTH_WAYS = pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/v1/recipients", KEY_OF_ACME),
        (f"/admin/v1/tenants/{ACME}/recipients", ADMIN_TOKEN),
    ],
)


async def met(post: Carteiro, *recipients: dict[str, str]) -> list[str]:
    """Ids of recipients that e-mails were sent to."""
    async with a_client(post) as client:
        answers = [await sent(client, to=each["email"], recipient=each) for each in recipients]
    return [answer["recipient"]["recipientId"] for answer in answers]


async def listed(client: httpx.AsyncClient, path: str, **query: Any) -> list[str]:
    """Ids of the recipients that match."""
    document = answer_in(await client.get(path, params=query))
    RecipientPage.model_validate(document)
    return [each["recipientId"] for each in document["items"]]


@BOTH_WAYS
async def test_recipients_are_listed(post: Carteiro, path: str, key: str) -> None:
    """All of them page by page, or by external id or address."""
    ana, rui = await met(post, ANA, RUI)

    async with a_client(post, key=key) as client:
        shown = answer_in(await client.get(f"{path}/{ana}"))
        first = answer_in(await client.get(path, params={"limit": 1}))
        rest = await listed(client, path, limit=1, cursor=first["nextCursor"])

        assert sorted(await listed(client, path)) == sorted([ana, rui])
        assert await listed(client, path, externalId="rui") == [rui]
        assert await listed(client, path, email="ana@EXAMPLE.com") == [ana]

    RecipientView.model_validate(shown)
    assert shown.items() >= ANA.items()
    assert sorted([first["items"][0]["recipientId"], *rest]) == sorted([ana, rui])


@BOTH_WAYS
async def test_deleted_recipient_stays_with_its_time(post: Carteiro, path: str, key: str) -> None:
    """Deleting it again changes nothing."""
    [ana] = await met(post, ANA)

    async with a_client(post, key=key) as client:
        first = await client.delete(f"{path}/{ana}")
        shown = answer_in(await client.get(f"{path}/{ana}"))
        again = await client.delete(f"{path}/{ana}")
        unchanged = answer_in(await client.get(f"{path}/{ana}"))

    assert (first.status_code, again.status_code) == (204, 204)
    assert shown["deletedAt"] is not None
    assert unchanged == shown


@BOTH_WAYS
async def test_erased_recipient_leaves_no_personal_data(
    post: Carteiro, path: str, key: str
) -> None:
    """Neither in its own row nor in its messages; other recipients keep theirs."""
    ana, rui = await met(post, ANA, RUI)

    async with a_client(post, key=key) as client, a_client(post) as tenant:
        erased = answer_in(await client.post(f"{path}/{ana}/erase"))
        everything = await tenant.get("/v1/emails")
        known = await tenant.get("/v1/recipients")

    ErasedDocument.model_validate(erased)
    assert erased["messages"] == 1
    assert erased["hasMore"] is False
    for text in (everything.text, known.text):
        assert "ana@example.com" not in text
        assert "Ana Souza" not in text
        assert "rui@example.com" in text
    assert rui in known.text


@BOTH_WAYS
@pytest.mark.parametrize("unknown", ["x", "%00", "01900000-0000-7000-8000-000000000001"])
async def test_unknown_recipient_is_not_found(
    post: Carteiro, path: str, key: str, unknown: str
) -> None:
    """For every operation."""
    async with a_client(post, key=key) as client:
        for method, address in (("GET", ""), ("DELETE", ""), ("POST", "/erase")):
            response = await client.request(method, f"{path}/{unknown}{address}")
            error_in(response, 404, "NOT_FOUND")
