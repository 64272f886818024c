"""Audit rows over HTTP: who changed what, also by a tenant's own key."""

import asyncio
from typing import Any

import httpx
import pytest

from carteiro.api.admin.audit import AuditPage
from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.model import Role, Tenant
from support.builders import ACME, BRASA
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    a_client_of,
    answer_in,
    error_in,
    let_in,
    opened,
    sent,
)

AUDIT = "/admin/v1/audit"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
TEMPLATE = {"subject": "Oi", "text": "Olá"}


async def rows(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    """The matching rows, newest first."""
    document = answer_in(await client.get(AUDIT, params=query))
    AuditPage.model_validate(document)
    items: list[dict[str, Any]] = document["items"]
    return items


async def test_change_by_a_token_names_it_and_its_address() -> None:
    """The address is the client's, as far as proxies are trusted; a forged one further away is not believed."""
    async with (
        opened("memory://", api={"trusted_proxies": "10.0.0.0/8"}) as post,
        a_client_of(create_api(post), key=ADMIN_TOKEN, address="10.0.0.1") as client,
    ):
        forwarded = {"X-Forwarded-For": "198.51.100.9, 192.0.2.7"}
        answer_in(await client.post(f"/admin/v1/tenants/{ACME}/pause", headers=forwarded))
        [row] = await rows(client, kind="tenant", action="pause")

    assert (row["who"], row["via"], row["origin"]) == ("admin", "api", "192.0.2.7")
    assert (row["object"], row["companyId"]) == (ACME, ACME)
    assert (row["before"], row["after"]) == ({"paused": False}, {"paused": True})


async def test_change_by_a_tenant_names_its_key(post: Carteiro) -> None:
    """By its name, else by its id; a tenant cannot read the rows."""
    api = create_api(post)
    [key] = await post.backend.keys.list(ACME)
    await let_in(post, ACME, "ck_named", name="shop")

    async with (
        a_client_of(api) as unnamed,
        a_client_of(api, key="ck_named") as named,
        a_client_of(api, key=ADMIN_TOKEN) as admin,
    ):
        answer_in(await unnamed.put("/v1/templates/welcome", json=TEMPLATE))
        answer_in(await named.put("/v1/suppressions", json={"emails": ["ana@example.com"]}))
        error_in(await named.get(AUDIT), 401, "UNAUTHORIZED")
        found = await rows(admin, companyId=ACME)
    changes = [(each["who"], each["action"], each["kind"]) for each in found[:2]]

    assert changes == [("shop", "add", "suppression"), (f"key {key.id}", "put", "template")]
    assert "ana@example.com" not in str(found)


async def test_token_of_one_tenant_sees_its_rows_alone(post: Carteiro) -> None:
    """Page by page, without a trace of the others, nor of a former tenant of its id."""
    while (erased := await post.backend.tenants.erase(BRASA)) and erased.has_more:
        pass
    await asyncio.sleep(0.002)  # rows of one millisecond may be of either
    await post.backend.tenants.define([Tenant(BRASA)])
    await let_in(post, BRASA, "ca_brasa", role=Role.VIEWER, name="bia")
    api = create_api(post)

    async with (
        a_client_of(api, key=ADMIN_TOKEN) as admin,
        a_client_of(api, key="ca_brasa") as client,
    ):
        for tenant in (ACME, BRASA, ACME):
            answer_in(await admin.patch(f"/admin/v1/tenants/{tenant}", json={"cap": len(tenant)}))
        first = answer_in(await client.get(AUDIT, params={"limit": 1}))
        rest = await rows(client, cursor=first["nextCursor"])
        every = await rows(client)

    assert [*first["items"], *rest] == every
    assert {each["companyId"] for each in every} == {BRASA}
    assert "erase" not in {each["action"] for each in every}


@pytest.mark.parametrize("by_token", [True, False], ids=["token", "key"])
async def test_changes_of_a_tenant_are_limited(*, by_token: bool) -> None:
    """One tenant cannot flood the audit rows, also by a token for it; reading and others are not limited by it."""
    async with opened("memory://", api={"changes_per_minute": 2}) as post:
        await let_in(post, ACME, "ca_acme", role=Role.ADMIN, name="ana")
        api = create_api(post)
        own = f"/admin/v1/tenants/{ACME}" if by_token else "/v1"
        async with (
            a_client_of(api) as by_key,
            a_client_of(api, key="ca_acme" if by_token else KEY_OF_ACME) as client,
            a_client_of(api, key="ck_brasa") as other,
            a_client_of(api, key=ADMIN_TOKEN) as admin,
        ):
            answer_in(await by_key.put("/v1/templates/welcome", json=TEMPLATE))
            answer_in(await client.put(f"{own}/templates/welcome", json=TEMPLATE))
            refused = [
                await client.put(f"{own}/templates/welcome", json=TEMPLATE),
                await client.post(f"{own}/recipients/{UNKNOWN}/erase"),
                await by_key.post(f"/v1/recipients/{UNKNOWN}/erase"),
            ]
            answer_in(await client.get(f"{own}/templates"))
            answer_in(await other.put("/v1/templates/welcome", json=TEMPLATE))
            answer_in(await admin.post(f"/admin/v1/tenants/{ACME}/pause"))

    for each in refused:
        error_in(each, 429, "TOO_MANY_REQUESTS")


async def test_own_suppressions_of_a_tenant_are_not_limited_and_one_row_a_day() -> None:
    """One request for each unsubscription is normal use; a token for the tenant has a row for each, and the limit."""
    async with opened(
        "memory://", api={"changes_per_minute": 2, "trusted_proxies": "10.0.0.0/8"}
    ) as post:
        await let_in(post, ACME, "ca_acme", role=Role.OPERATOR, name="ana")
        api = create_api(post)
        async with (
            a_client_of(api, address="10.0.0.1") as client,
            a_client_of(api, key="ca_acme") as token,
            a_client_of(api, key=ADMIN_TOKEN) as admin,
        ):
            for number in range(5):
                emails, origin = (
                    [f"ana{number}@example.com"],
                    {"X-Forwarded-For": f"192.0.2.{number}"},
                )
                answer_in(
                    await client.put("/v1/suppressions", json={"emails": emails}, headers=origin)
                )
            for number in range(2):
                which = {"email": f"ana{number}@example.com"}
                assert (await client.delete("/v1/suppressions", params=which)).status_code == 204
            path, body = f"/admin/v1/tenants/{ACME}/suppressions", {"emails": ["bia@example.com"]}
            answers = [(await token.put(path, json=body)).status_code for _ in range(3)]
            found = await rows(admin, kind="suppression")

    assert answers == [200, 200, 429]
    assert [(each["action"], each["who"] == "ana", each["after"]) for each in found] == [
        ("add", True, {"count": 1}),
        ("add", True, {"count": 1}),
        ("rm", False, {}),
        ("add", False, {}),
    ]


async def test_rows_cannot_be_changed_or_deleted(post: Carteiro) -> None:
    """There is no such method, for any role."""
    async with a_client_of(create_api(post), key=ADMIN_TOKEN) as client:
        for method in ("PUT", "POST", "PATCH", "DELETE"):
            error_in(await client.request(method, AUDIT), 405, "METHOD_NOT_ALLOWED")


async def test_cancel_by_an_administrator_is_recorded_and_a_tenants_own_is_not(
    post: Carteiro,
) -> None:
    """The tenant's own is in the message's timeline."""
    api = create_api(post)
    later = {
        "to": "a@example.com",
        "subject": "a",
        "text": "b",
        "scheduledAt": "2199-01-01T00:00:00Z",
    }

    async with a_client_of(api) as client, a_client_of(api, key=ADMIN_TOKEN) as admin:
        ids = [
            answer_in(await client.post("/v1/email/send", json=later), 202)["outboxId"]
            for _ in range(2)
        ]
        answer_in(await client.post(f"/v1/emails/{ids[0]}/cancel"))
        answer_in(await admin.post(f"/admin/v1/messages/{ids[1]}/cancel"))
        again = await admin.post(f"/admin/v1/messages/{ids[1]}/cancel")
        found = await rows(admin, action="cancel")

    error_in(again, 409, "CONFLICT")
    assert [each["object"] for each in found] == [ids[1]]


async def test_concurrent_cancels_by_an_administrator_are_one_row(post: Carteiro) -> None:
    """One succeeds, the others are refused, and the record has one cancel."""
    async with a_client_of(create_api(post)) as client:
        accepted = await sent(client, scheduledAt="2199-01-01T00:00:00Z")
    async with a_client_of(create_api(post), key=ADMIN_TOKEN) as admin:
        path = f"/admin/v1/messages/{accepted['outboxId']}/cancel"
        answers = await asyncio.gather(*(admin.post(path) for _ in range(8)))
        found = await rows(admin, action="cancel")

    assert sorted(each.status_code for each in answers) == [200] + [409] * 7
    assert [each["object"] for each in found] == [accepted["outboxId"]]
