"""Rights: every endpoint x every role x tokens for all tenants, for this one and for another one.

The endpoints come from the OpenAPI document, the rights from the one table: a new endpoint is tested without being
named here, and cannot be offered without a row.
"""

import asyncio
from typing import Any

import httpx
import pytest

from carteiro.api.application import create_api
from carteiro.api.rights import RIGHTS, Right
from carteiro.app import Carteiro
from carteiro.model import ZERO, AuditFilter, Role, Tenant, TenantId
from support.builders import ACME, BRASA
from support.every_endpoint import SECRET, Requests, snapshot, things_of_acme
from support.http import ADMIN_TOKEN, a_client_of, answer_in, error_in, let_in

TOKEN = "ca_under_test"
READS_BY_POST = {
    "POST /admin/v1/tenants/{tenant}/templates/{type}/preview",
    "POST /admin/v1/redrives/plan",
}


async def a_token(post: Carteiro, role: Role, tenant: TenantId | None = None, **fields: Any) -> str:
    """A token of this role, for all tenants or one."""
    fields = {"name": "under test", "role": role} | fields
    made = await let_in(post, tenant, TOKEN, **fields)
    assert made.role is role
    return TOKEN


# --- the table ----------------------------------------------------------------------------------


def test_every_endpoint_of_administrators_has_a_row_and_every_row_an_endpoint(
    post: Carteiro,
) -> None:
    """So nothing is reachable by a rule that nobody wrote down."""
    things = {
        each: {"tenant": "", "type": "", "key": "", "id": "", "name": ""}
        for each in ("messages", "recipients", "redrives")
    }
    offered = {
        f"{method} {path}"
        for (method, path), _, _ in Requests(create_api(post).openapi(), things).each()
        if path.startswith(("/admin/", "/metrics"))
    }

    assert offered == set(RIGHTS)


def test_endpoint_without_a_row_is_not_offered(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process does not start: it fails closed."""
    fewer = {key: each for key, each in RIGHTS.items() if key != "GET /admin/v1/stats"}
    monkeypatch.setattr("carteiro.api.application.RIGHTS", fewer)

    with pytest.raises(KeyError, match="stats"):
        create_api(post)


def test_viewer_changes_nothing_by_the_table() -> None:
    """Whatever is open to viewers only reads."""
    seen = {key for key, right in RIGHTS.items() if right.least is Role.VIEWER}

    assert {key for key in seen if not key.startswith("GET ")} == READS_BY_POST


def test_token_of_one_tenant_defines_nothing_of_the_installation_by_the_table() -> None:
    """Neither its own share and limits, nor other tenants, tokens and rules."""
    scoped = {key for key, right in RIGHTS.items() if right.scoped}

    assert (
        scoped
        & {
            "GET /admin/v1/tenants",
            "PUT /admin/v1/tenants/{tenant}",
            "PATCH /admin/v1/tenants/{tenant}",
            "POST /admin/v1/tenants/{tenant}/enable",
            "POST /admin/v1/keys",
            "GET /admin/v1/keys",
            "PUT /admin/v1/fairness",
            "GET /admin/v1/stats",
            "GET /metrics",
            "POST /admin/v1/dead-letters/import",
        }
        == set()
    )


# --- the check ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tenant", [None, ACME, BRASA])
@pytest.mark.parametrize("role", list(Role))
async def test_every_endpoint_keeps_to_its_row(
    post: Carteiro, role: Role, tenant: TenantId | None
) -> None:
    """403 for a role that is too low, 404 for another tenant's things; and a refused request changes nothing."""
    things = await things_of_acme(post)
    token = await a_token(post, role, tenant)
    before = await snapshot(post, things)
    api = create_api(post)
    asked = list(Requests(api.openapi(), things).each())
    # Destructive ones come last.
    asked.sort(key=lambda each: (each[1].endswith(("/erase", "/disable")), each[0][0] == "DELETE"))

    async with a_client_of(api, key=token) as client:
        for (method, path), address, options in asked:
            response = await client.request(method, address, **options)
            right = RIGHTS.get(f"{method} {path}")
            said = (method, path, response.text)
            if right is None:
                assert response.status_code == 401, said
            else:
                assert response.status_code in statuses(right, path, role, tenant), said
            assert tenant != BRASA or SECRET not in response.text, said

    if role is Role.VIEWER or tenant == BRASA:
        assert await snapshot(post, things) == before


def statuses(right: Right, path: str, role: Role, tenant: TenantId | None) -> set[int]:
    """The answers that the row allows to a request about ACME's things."""
    if tenant is not None and not right.scoped:
        return {403}
    if tenant == BRASA and "{tenant}" in path:
        return {404}
    if not role.covers(right.least):
        return {403}
    if tenant == BRASA and "{id}" in path:
        return {404}
    return {200, 201, 202, 204, 404, 409}  # some operations delete what others ask for


async def test_refusal_of_a_role_names_both(post: Carteiro) -> None:
    """The holder knows whom to ask for what."""
    token = await a_token(post, Role.VIEWER)

    async with a_client_of(create_api(post), key=token) as client:
        error = error_in(await client.post(f"/admin/v1/tenants/{ACME}/pause"), 403, "FORBIDDEN")

    assert error["message"] == "The role of this token is viewer: at least operator is needed"


async def test_filters_of_a_token_of_one_tenant_reach_no_other(post: Carteiro) -> None:
    """By a query, by ids in a body, by a filter in a body: not found, and nothing is sent again."""
    things = await things_of_acme(post)
    before = await snapshot(post, things)
    token = await a_token(post, Role.ADMIN, BRASA)
    dead = things["messages"]["id"]

    async with a_client_of(create_api(post), key=token) as client:
        for path in (
            "messages",
            "dead-letters",
            "dead-letters/groups",
            "dead-letters/export",
            "audit",
        ):
            named = await client.get(f"/admin/v1/{path}", params={"companyId": ACME})
            error_in(named, 404, "NOT_FOUND")
            silent = await client.get(f"/admin/v1/{path}")
            assert silent.status_code == 200
            assert SECRET not in silent.text
            assert dead not in silent.text
        for body in ({"ids": [dead]}, {"matching": {"companyId": ACME}}):
            error_in(
                await client.post("/admin/v1/dead-letters/redrive", json=body), 404, "NOT_FOUND"
            )
        all_of_mine = await client.post("/admin/v1/dead-letters/redrive", json={"matching": {}})
        purged = await client.post("/admin/v1/dead-letters/purge", json={"olderThanMs": 0})

    assert answer_in(all_of_mine)["results"] == []
    assert answer_in(purged)["dropped"] == 0
    assert await snapshot(post, things) == before


async def test_token_of_one_tenant_cannot_widen_itself(post: Carteiro) -> None:
    """It makes no tokens, and a key that it makes is its tenant's and no token."""
    token = await a_token(post, Role.ADMIN, BRASA)
    api = create_api(post)

    async with a_client_of(api, key=token) as client:
        wide = {"name": "wide", "role": "admin"}
        error_in(await client.post("/admin/v1/keys", json=wide), 403, "FORBIDDEN")
        made = answer_in(await client.post(f"/admin/v1/tenants/{BRASA}/keys", json={}), 201)
        smuggled = await client.post(f"/admin/v1/tenants/{BRASA}/keys", json=wide)
    async with a_client_of(api, key=made["key"]) as newcomer:
        error_in(await newcomer.get("/admin/v1/audit"), 401, "UNAUTHORIZED")

    assert (made["companyId"], made["role"]) == (BRASA, None)
    error_in(smuggled, 422, "INVALID_VALUE")


async def test_switch_undoes_no_change_made_at_the_same_moment(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator of one tenant who pauses it neither enables it again nor gives it its old share back."""
    find, tenants = post.backend.tenants.find, post.backend.tenants

    async def found_before_a_change(ids: Any) -> Any:
        stored = await find(ids)
        monkeypatch.setattr(tenants, "find", find)
        await tenants.define([Tenant(ACME, weight=0.5, disabled=True)])
        return stored

    token = await a_token(post, Role.OPERATOR, ACME)
    async with a_client_of(create_api(post), key=token) as client:
        answer_in(await client.get(f"/admin/v1/tenants/{ACME}"))
        monkeypatch.setattr(tenants, "find", found_before_a_change)
        paused = answer_in(await client.post(f"/admin/v1/tenants/{ACME}/pause"))
    async with a_client_of(create_api(post), key=ADMIN_TOKEN) as admin:
        monkeypatch.setattr(tenants, "find", found_before_a_change)
        capped = answer_in(await admin.patch(f"/admin/v1/tenants/{ACME}", json={"cap": 7}))

    for answer in (paused, capped):
        assert (answer["disabled"], answer["weight"]) == (True, 0.5), answer
    assert await find([ACME]) == [Tenant(ACME, weight=0.5, disabled=True, cap=7)]


# --- tokens that ended --------------------------------------------------------------------------


async def test_expired_token_is_refused(post: Carteiro) -> None:
    """As an unknown one."""
    token = await a_token(post, Role.ADMIN, expires_in=ZERO)

    async with a_client_of(create_api(post), key=token) as client:
        error_in(await client.get("/admin/v1/stats"), 401, "UNAUTHORIZED")


async def test_token_of_a_disabled_tenant_is_refused(post: Carteiro) -> None:
    """It cannot enable its tenant again."""
    token = await a_token(post, Role.ADMIN, ACME)
    api = create_api(post)

    async with a_client_of(api, key=token) as client, a_client_of(api, key=ADMIN_TOKEN) as admin:
        answer_in(await client.get(f"/admin/v1/tenants/{ACME}"))
        answer_in(await admin.post(f"/admin/v1/tenants/{ACME}/disable"))
        error_in(await client.post(f"/admin/v1/tenants/{ACME}/enable"), 401, "UNAUTHORIZED")


async def test_token_revoked_during_its_request_opens_nothing_more(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running request ends with its rights of the start; the next one is refused."""
    token = await a_token(post, Role.OPERATOR)
    [under_test] = [
        each for each in await post.backend.keys.list(None) if each.name == "under test"
    ]
    api = create_api(post)
    entered, go_on = asyncio.Event(), asyncio.Event()
    find = post.backend.tenants.find

    async def slow(ids: Any) -> Any:
        entered.set()
        await go_on.wait()
        return await find(ids)

    async with a_client_of(api, key=token) as client, a_client_of(api, key=ADMIN_TOKEN) as admin:
        monkeypatch.setattr(post.backend.tenants, "find", slow)
        running = asyncio.create_task(client.post(f"/admin/v1/tenants/{ACME}/pause"))
        await entered.wait()
        revoked = await admin.delete(f"/admin/v1/keys/{under_test.id}")
        go_on.set()
        answered = await running
        after = await client.get(f"/admin/v1/tenants/{ACME}")

    assert (revoked.status_code, answered.status_code) == (204, 200)
    error_in(after, 401, "UNAUTHORIZED")
    rows = (await post.backend.audit.list(AuditFilter(kind="tenant", action="pause"))).rows
    assert [each.who for each in rows] == ["under test"]


# --- role confusion -----------------------------------------------------------------------------


async def test_token_in_a_query_or_a_body_counts_for_nothing(post: Carteiro) -> None:
    """Nor does a role that a client claims for itself."""
    token = await a_token(post, Role.VIEWER)
    claims = {"X-Role": "admin", "X-Carteiro-Role": "admin", "Role": "admin"}
    query = {"token": ADMIN_TOKEN, "key": ADMIN_TOKEN, "apikey": ADMIN_TOKEN, "role": "admin"}

    async with a_client_of(create_api(post), key=token) as client:
        paused = await client.post(
            f"/admin/v1/tenants/{ACME}/pause", params=query, headers=claims, json=query
        )
    async with a_client_of(create_api(post), key=None) as stranger:
        unknown = await stranger.get("/admin/v1/stats", params=query, headers=claims)

    error_in(paused, 403, "FORBIDDEN")
    error_in(unknown, 401, "UNAUTHORIZED")


@pytest.mark.parametrize("path", ["/admin/v1/fairness", f"/admin/v1/tenants/{ACME}"])
async def test_two_keys_in_one_request_do_not_add_up(post: Carteiro, path: str) -> None:
    """X-API-Key counts, and of two of them the first: on the fast path and on the router's."""
    viewer = await a_token(post, Role.VIEWER)
    body = {} if path.endswith("fairness") else {"cap": 1}
    mixed: list[list[tuple[str, str]]] = [
        [("X-API-Key", viewer), ("Authorization", f"Bearer {ADMIN_TOKEN}")],
        [("Authorization", f"Bearer {viewer}"), ("apikey", ADMIN_TOKEN)],
        [("X-API-Key", viewer), ("X-API-Key", ADMIN_TOKEN)],
    ]

    async with a_client_of(create_api(post), key=None) as client:
        for headers in mixed:
            response = await client.put(path, json=body, headers=httpx.Headers(headers))
            error_in(response, 403, "FORBIDDEN")


async def test_path_of_another_spelling_is_not_another_tenant(post: Carteiro) -> None:
    """Encoded, with dots, slashes or other case: never a way around the check of the tenant."""
    things = await things_of_acme(post)
    before = await snapshot(post, things)
    token = await a_token(post, Role.ADMIN, BRASA)
    spellings = (
        "%61cme",
        "brasa/../acme",
        "brasa%2F..%2Facme",
        "ACME",
        "acme%00",
        "brasa;acme",
        "//acme",
    )

    async with a_client_of(create_api(post), key=token) as client:
        for name in spellings:
            response = await client.post(f"/admin/v1/tenants/{name}/pause")
            assert response.status_code in {403, 404, 405}, (name, response.text)

    assert await snapshot(post, things) == before


async def test_many_tokens_are_live_at_a_time(post: Carteiro) -> None:
    """Each with its name, role, tenant and end; two of a name, to rotate it."""
    async with a_client_of(create_api(post), key=ADMIN_TOKEN) as client:
        for name in ("ana", "bia", "caio", "bia"):
            body = {"name": name, "role": "viewer", "companyId": ACME, "expiresInMs": 60_000}
            made = answer_in(await client.post("/admin/v1/keys", json=body), 201)
            assert (made["name"], made["role"], made["companyId"]) == (name, "viewer", ACME)
        other = await client.post("/admin/v1/keys", json={"name": "bia", "role": "admin"})
        third = await client.post("/admin/v1/keys", json=body)
        nowhere = {"name": "ana", "role": "viewer", "companyId": "nobody"}
        unknown = await client.post("/admin/v1/keys", json=nowhere)
        listed = answer_in(await client.get("/admin/v1/keys"))["items"]
        of_acme = answer_in(await client.get(f"/admin/v1/tenants/{ACME}/keys"))["items"]

    taken, full = (error_in(each, 409, "CONFLICT")["message"] for each in (other, third))
    assert taken == "A live token with this name has another role or tenant: choose another name"
    assert full == "There are 2 live tokens with this name already: revoke one first"
    error_in(unknown, 404, "NOT_FOUND")
    assert [each["name"] for each in listed] == ["bia", "caio", "bia", "ana", "admin"]
    assert [each["role"] for each in of_acme] == [None]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ana",
        "admin ",
        "\uff41dmin",
        "\ufb01ona",
        "e\u0301va",
        "hidden-0123456789abcdef",
        "Hidden-ana",
        "ana\n",
        "ana@example.com",
        "ca_0123456789abcdef",
        "a" * 65,
        "a\u202eb",
        "\0",
        "_a",
        "a" * 1_000_000,
    ],
)
async def test_name_of_a_token_is_short_and_plain(post: Carteiro, name: str) -> None:
    """It stands in every audit row: no address, no secret, no control characters."""
    async with a_client_of(create_api(post), key=ADMIN_TOKEN) as client:
        response = await client.post("/admin/v1/keys", json={"name": name, "role": "viewer"})

    assert response.status_code in {413, 422}, response.text
    assert len(await post.backend.keys.list(None)) == 1
