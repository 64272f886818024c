"""Suppressions over HTTP: a tenant's own list, and any tenant's for administrators."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from carteiro.app import Carteiro
from support.http import ADMIN_TOKEN, KEY_OF_BRASA, a_client, answer_in, error_in, fields_in, sent
from support.library import work

OWN, OF_ACME = "/v1/suppressions", "/admin/v1/tenants/acme/suppressions"


async def items(client: httpx.AsyncClient, path: str = OWN, **query: str) -> list[dict[str, Any]]:
    """Listed items."""
    listed: list[dict[str, Any]] = answer_in(await client.get(path, params=query))["items"]
    return listed


async def test_tenant_keeps_its_own_list(post: Carteiro) -> None:
    """Put, listed, found by any spelling, deleted once."""
    async with a_client(post) as client:
        put = await client.put(OWN, json={"emails": ["Ana@EXAMPLE.com", "bia@example.com"]})
        [ana] = await items(client, email="ana@example.com")
        removed = await client.delete(OWN, params={"email": "ANA@example.com"})
        again = await client.delete(OWN, params={"email": "ana@example.com"})
        left = await items(client)

    assert answer_in(put) == {"count": 2}
    assert {name: ana[name] for name in ana if name != "createdAt"} == {
        "email": "Ana@example.com",
        "reason": "manual",
        "active": True,
        "bounces": 0,
        "expiresAt": None,
    }
    assert removed.status_code == 204
    error_in(again, 404, "NOT_FOUND")
    assert [each["email"] for each in left] == ["bia@example.com"]


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("ana+x@example.com", "ana%2Bx%40example.com"),
        ("a/b@example.com", "a%2Fb%40example.com"),
        ("a/b@example.com", "a/b@example.com"),
        ("50%off@example.com", "50%25off%40example.com"),
        ("a%2Bb@example.com", "a%252Bb%40example.com"),
        ("a&b=c?d@example.com", "a%26b%3Dc%3Fd%40example.com"),
        ("joão@münchen.example", "jo%C3%A3o%40m%C3%BCnchen.example"),
    ],
)
@pytest.mark.parametrize("path", [OWN, OF_ACME])
async def test_address_with_any_characters_is_found_and_deleted(
    post: Carteiro, path: str, address: str, written: str
) -> None:
    """Percent-encoded in the query; no other address is affected."""
    key = {"key": ADMIN_TOKEN} if path == OF_ACME else {}
    async with a_client(post, **key) as client:
        answer_in(await client.put(path, json={"emails": [address, "other@example.com"]}))
        found = answer_in(await client.get(f"{path}?email={written}"))["items"]
        removed = await client.delete(f"{path}?email={written}")
        left = await items(client, path)

    assert [each["email"] for each in found] == [address]
    assert removed.status_code == 204
    assert [each["email"] for each in left] == ["other@example.com"]


async def test_unencoded_plus_is_a_space(post: Carteiro) -> None:
    """As in every query: the address is invalid, and nothing is deleted."""
    async with a_client(post) as client:
        answer_in(await client.put(OWN, json={"emails": ["ana+x@example.com"]}))
        missed = await client.delete(f"{OWN}?email=ana+x@example.com")

        assert len(await items(client)) == 1
    error_in(missed, 404, "NOT_FOUND")


async def test_suppressed_recipient_is_not_sent_to(post: Carteiro) -> None:
    """The e-mail fails validation; copies are left out, and the timeline says so."""
    async with a_client(post) as client:
        await client.put(OWN, json={"emails": ["ana@example.com"]})
        refused = await sent(client, to="ana@example.com")
        copied = await sent(client, to="ok@sandbox.test", cc=["Ana@example.com", "bia@example.com"])
        await work(post)
        first = answer_in(await client.get(f"/v1/emails/{refused['outboxId']}"))
        second = answer_in(await client.get(f"/v1/emails/{copied['outboxId']}"))

    [failed] = [each for each in first["events"] if each["type"] == "VALIDATION_FAILED"]
    assert first["status"] == "FAILED"
    assert failed["metadata"]["errorCode"] == "SUPPRESSED"
    assert failed["metadata"]["validation"] == "RECIPIENT"
    assert second["status"] == "SENT"
    [left_out] = [each for each in second["events"] if each["type"] == "RECIPIENT_REFUSED"]
    assert left_out["metadata"]["recipient"] == "Ana@example.com"
    assert left_out["metadata"]["errorCode"] == "SUPPRESSED"
    assert post.tally.suppressed == 1


async def test_suppression_ends_at_its_time(post: Carteiro) -> None:
    """Until then it is listed with its end."""
    until = datetime.now(UTC) + timedelta(days=1)
    async with a_client(post) as client:
        body = {"emails": ["bia@example.com"], "expiresAt": until.isoformat()}
        answer_in(await client.put(OWN, json=body))
        [listed] = await items(client)

    assert listed["expiresAt"] is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"emails": ["nobody"]}, "emails.0"),
        ({"emails": ["ana@example.com", "Ana <ana@example.com>"]}, "emails.1"),
        ({"emails": []}, "emails"),
        ({"emails": ["ana@example.com"], "expiresAt": "2999-01-01T00:00:00Z"}, "expiresAt"),
        ({"emails": ["ana@example.com"], "expiresAt": "tomorrow"}, "expiresAt"),
        ({"emails": ["ana@example.com"], "expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
    ],
)
async def test_invalid_suppression_changes_nothing(
    post: Carteiro, body: dict[str, Any], field: str
) -> None:
    """All of them are stored, or none."""
    async with a_client(post) as client:
        error = error_in(await client.put(OWN, json=body), 422, "INVALID_VALUE")
        listed = await items(client)

    assert fields_in(error) == [field]
    assert listed == []


async def test_administrators_see_any_tenants_list(post: Carteiro) -> None:
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        answer_in(await admin.put(OF_ACME, json={"emails": ["ana@example.com"]}))
        seen = await items(admin, OF_ACME)
        unknown = await admin.get("/admin/v1/tenants/nobody/suppressions")
    async with a_client(post) as own:
        theirs = await items(own)
    async with a_client(post, key=KEY_OF_BRASA) as other:
        others = await items(other)

    assert seen == theirs
    assert len(seen) == 1
    assert others == []
    error_in(unknown, 404, "NOT_FOUND")


async def test_pages_follow_each_other(post: Carteiro) -> None:
    """By the cursor of the page before."""
    async with a_client(post) as client:
        await client.put(OWN, json={"emails": [f"a{each}@example.com" for each in range(5)]})
        first = answer_in(await client.get(OWN, params={"limit": 3}))
        query = {"limit": 3, "cursor": first["nextCursor"]}
        second = answer_in(await client.get(OWN, params=query))

    emails = [each["email"] for each in first["items"] + second["items"]]
    assert sorted(emails) == [f"a{each}@example.com" for each in range(5)]
    assert second["nextCursor"] is None
