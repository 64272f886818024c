"""Access: the keys and networks that each endpoint accepts."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.model import ZERO, Key, Role, Tenant, TenantId
from carteiro.ports import Keys
from support.builders import ACME, BRASA
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    a_client_of,
    answer_in,
    error_in,
    let_in,
    opened,
    sent,
    stored,
)

OLD = "ck_old"


# --- keys ---------------------------------------------------------------------------------------


async def test_expired_key_is_refused(post: Carteiro) -> None:
    """It gets the same answer as an unknown key."""
    await let_in(post, ACME, OLD, expires_in=ZERO)

    async with a_client(post, key=OLD) as client:
        response = await client.get("/v1/emails")

    error_in(response, 401, "UNAUTHORIZED")


async def test_key_is_valid_until_it_expires(post: Carteiro) -> None:
    await let_in(post, ACME, OLD, expires_in=timedelta(days=1))

    async with a_client(post, key=OLD) as client:
        answer_in(await client.get("/v1/emails"))


async def test_revoked_key_is_refused(post: Carteiro) -> None:
    """It leaves the cache at once; the other key stays valid."""
    old = await let_in(post, ACME, OLD)
    api = create_api(post)

    async with (
        a_client_of(api, key=OLD) as client,
        a_client_of(api) as other,
        a_client_of(api, key=ADMIN_TOKEN) as admin,
    ):
        answer_in(await client.get("/v1/emails"))
        revoked = await admin.delete(f"/admin/v1/tenants/{ACME}/keys/{old.id}")

        assert revoked.status_code == 204
        error_in(await client.get("/v1/emails"), 401, "UNAUTHORIZED")
        answer_in(await other.get("/v1/emails"))


class _LookUps:
    """Counts the keys that the store was queried for."""

    def __init__(self, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._holder = keys.holder
        monkeypatch.setattr(keys, "holder", self._counted)

    async def _counted(self, key_hash: str) -> Key | None:
        self.count += 1
        return await self._holder(key_hash)


async def test_unknown_keys_of_one_address_are_queried_a_limited_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guessing costs the store nothing, also when all guesses come at once."""
    async with opened("memory://", api={"unknown_keys_per_minute": 3}) as post:
        api = create_api(post)
        asked = _LookUps(post.backend.keys, monkeypatch)
        async with a_client_of(api, key=None) as client:
            answers = await asyncio.gather(
                *(
                    client.get(path, headers={"X-API-Key": f"ck_guess_{number}"})
                    for number in range(10)
                    for path in ("/v1/emails", "/admin/v1/stats")
                )
            )

    assert asked.count == 3
    assert sorted(each.status_code for each in answers) == [401] * 3 + [429] * 17
    refused = next(each for each in answers if each.status_code == 429)
    error_in(refused, 429, "TOO_MANY_REQUESTS")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60


async def test_key_is_not_cached_beyond_its_expiry(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on the store is asked, and refuses it; a key without an end stays in the cache meanwhile."""
    now = 1000.0
    monkeypatch.setattr("carteiro.api.key_ring.time", SimpleNamespace(monotonic=lambda: now))
    await let_in(post, ACME, OLD, expires_in=timedelta(seconds=3))
    api = create_api(post)
    looked_up = _LookUps(post.backend.keys, monkeypatch)

    for key, expected in ((OLD, 2), (KEY_OF_BRASA, 3)):
        async with a_client_of(api, key=key) as client:
            await client.get("/v1/emails")
            now += 3
            await client.get("/v1/emails")
        assert looked_up.count == expected, key


async def test_many_first_requests_at_once_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid key is queried once, and does not count as a guess."""
    async with opened("memory://", api={"unknown_keys_per_minute": 1}) as post:
        api = create_api(post)
        looked_up = _LookUps(post.backend.keys, monkeypatch)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            answers = await asyncio.gather(
                *(each.get("/v1/emails") for each in [client, other] * 20)
            )

    assert {each.status_code for each in answers} == {200}
    assert looked_up.count == 2


async def test_valid_keys_pass_alongside_guesses() -> None:
    """From the same address if they were valid before, also after a change; from any other always."""
    api_settings = {"unknown_keys_per_minute": 1, "trusted_proxies": "10.0.0.0/8"}
    async with opened("memory://", api=api_settings) as post:
        api = create_api(post)
        async with (
            a_client_of(api, address="10.0.0.1") as client,
            a_client_of(api, key=ADMIN_TOKEN, address="10.0.0.1") as admin,
        ):
            here, there = {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
            answer_in(await client.get("/v1/emails", headers=here))
            guess = {"X-API-Key": "ck_guess"}
            error_in(await client.get("/v1/emails", headers=here | guess), 401, "UNAUTHORIZED")
            answer_in(await admin.post(f"/admin/v1/tenants/{ACME}/enable", headers=there))
            error_in(await client.get("/v1/emails", headers=here | guess), 429, "TOO_MANY_REQUESTS")
            answer_in(await client.get("/v1/emails", headers=here))
            of_brasa = {"X-API-Key": KEY_OF_BRASA}
            error_in(
                await client.get("/v1/emails", headers=here | of_brasa), 429, "TOO_MANY_REQUESTS"
            )
            answer_in(await client.get("/v1/emails", headers=there | of_brasa))


async def test_disabled_tenant_is_refused(post: Carteiro) -> None:
    """Its keys are invalid until it is enabled again."""
    api = create_api(post)

    async with a_client_of(api) as client, a_client_of(api, key=ADMIN_TOKEN) as admin:
        answer_in(await client.get("/v1/emails"))
        answer_in(await admin.post(f"/admin/v1/tenants/{ACME}/disable"))
        error_in(await client.get("/v1/emails"), 401, "UNAUTHORIZED")
        answer_in(await admin.post(f"/admin/v1/tenants/{ACME}/enable"))
        answer_in(await client.get("/v1/emails"))


async def test_tenant_disabled_in_another_process_sends_nothing(post: Carteiro) -> None:
    """A key that is still cached here does not get a message into the ledger."""
    async with a_client(post) as client:
        await sent(client)
        await post.backend.tenants.define([Tenant(ACME, disabled=True)])
        response = await client.post(
            "/v1/email/send", json={"to": "ana@example.com", "subject": "a", "text": "b"}
        )

    error_in(response, 401, "UNAUTHORIZED")
    assert await stored(post) == 1


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (ADMIN_TOKEN, "/v1/emails"),
        (ADMIN_TOKEN, "/v1/templates"),
        (KEY_OF_ACME, "/admin/v1/tenants"),
        (KEY_OF_ACME, f"/admin/v1/tenants/{ACME}"),
        (KEY_OF_ACME, "/admin/v1/nowhere"),
    ],
)
async def test_each_kind_of_key_opens_only_its_own_endpoints(
    post: Carteiro, key: str, path: str
) -> None:
    """A tenant's key opens no admin endpoint, and an admin token no tenant's."""
    async with a_client(post, key=key) as client:
        response = await client.get(path)

    assert response.status_code == (404 if path.endswith("nowhere") else 401)


@pytest.mark.parametrize("key", [None, "ca_nobody", KEY_OF_ACME])
@pytest.mark.parametrize("path", ["/admin/v1/tenants", f"/admin/v1/tenants/{ACME}", "/metrics"])
async def test_tenant_key_at_an_admin_endpoint_is_refused_as_the_wrong_kind(
    post: Carteiro, key: str | None, path: str
) -> None:
    """The key is valid, so the answer does not ask for a valid key."""
    async with a_client(post, key=key) as client:
        error = error_in(await client.get(path), 401, "UNAUTHORIZED")

    assert error["message"] == "An admin token is needed, as X-API-Key or Authorization: Bearer"


async def test_old_token_prefix_is_still_accepted(post: Carteiro) -> None:
    """Tokens once began as keys do; a new token differs from a key."""
    [other] = await post.backend.keys.list(None)
    await post.backend.keys.revoke([other.id], tenant=None)
    await let_in(post, None, "ck_token_of_before")

    async with a_client(post, key="ck_token_of_before") as admin:
        token = answer_in(
            await admin.post("/admin/v1/keys", json={"name": "ana", "role": "admin"}), 201
        )["key"]
        key = answer_in(await admin.post(f"/admin/v1/tenants/{ACME}/keys", json={}), 201)["key"]

    assert (token[:3], key[:3]) == ("ca_", "ck_")


async def test_use_of_a_key_is_recorded_after_the_answer(post: Carteiro) -> None:
    """Once a minute at most."""
    api = create_api(post)

    async with a_client_of(api) as client:
        await sent(client)
        first = await noted(post, ACME)
        await sent(client)

    assert (await noted(post, ACME)).last_used_at == first.last_used_at
    assert [each.last_used_at for each in await post.backend.keys.list(BRASA)] == [None]


async def noted(post: Carteiro, tenant: TenantId) -> Key:
    """The key of a tenant, once its use is recorded."""
    while True:
        [key] = await post.backend.keys.list(tenant)
        if key.last_used_at is not None:
            return key
        await asyncio.sleep(0)


# --- networks -----------------------------------------------------------------------------------

OFFICE = ("203.0.113.0/24", "2001:db8::/32")


@pytest.mark.parametrize(
    ("proxies", "address", "forwarded", "status"),
    [
        ("", "203.0.113.7", None, 200),
        ("", "2001:db8::7", None, 200),
        ("", "::ffff:203.0.113.7", None, 200),
        ("", "198.51.100.7", None, 403),
        ("", "unix", None, 403),
        ("", "198.51.100.7", "203.0.113.7", 403),  # no trusted proxy confirms it
        ("", "203.0.113.7", "198.51.100.7", 200),  # nor contradicts it
        ("10.0.0.0/8", "10.0.0.1", "203.0.113.7", 200),
        ("10.0.0.0/8", "10.0.0.1", "198.51.100.7", 403),
        ("10.0.0.0/8", "10.0.0.1", None, 403),
        ("10.0.0.0/8", "10.0.0.1", "203.0.113.7, 198.51.100.7", 403),  # the left one is forged
        ("10.0.0.0/8", "10.0.0.1", "1.2.3.4, 203.0.113.7, 10.0.0.2", 200),
        ("10.0.0.0/8", "198.51.100.7", "203.0.113.7", 403),
        ("10.0.0.0/8", "10.0.0.1", "203.0.113.7:50123", 200),
        ("10.0.0.0/8", "10.0.0.1", "203.0.113.7, 10.0.0.2:443", 200),
        ("10.0.0.0/8", "10.0.0.1", "[2001:db8::7]:50123", 200),
        ("10.0.0.0/8", "10.0.0.1", "[2001:db8::7]", 200),
        ("10.0.0.0/8", "10.0.0.1", "198.51.100.7:50123", 403),
        ("10.0.0.0/8", "10.0.0.1", "203.0.113.7:port", 403),
        ("10.0.0.0/8", "10.0.0.1", "203.0.113.7, rubbish", 403),
        ("10.0.0.0/8 192.0.2.1", "192.0.2.1", "203.0.113.7,10.1.1.1", 200),
    ],
)
async def test_allow_list_checks_the_address_that_can_be_trusted(
    proxies: str, address: str, forwarded: str | None, status: int
) -> None:
    """From the right, the first address that does not belong to a trusted proxy."""
    async with opened("memory://", api={"trusted_proxies": proxies}) as post:
        await post.backend.tenants.define([Tenant(ACME, allowed_networks=OFFICE)])
        async with a_client(post, address=address) as client:
            headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
            response = await client.get("/v1/emails", headers=headers)

    assert response.status_code == status, response.text
    if status == 403:
        error_in(response, 403, "FORBIDDEN")


async def test_allow_list_belongs_to_one_tenant(post: Carteiro) -> None:
    """Other tenants and administrators of all come from anywhere; a refused request stores nothing."""
    await let_in(post, ACME, "ca_acme", role=Role.ADMIN, name="ana")
    await post.backend.tenants.define([Tenant(ACME, allowed_networks=OFFICE)])
    api = create_api(post)

    async with (
        a_client_of(api) as client,
        a_client_of(api, key=KEY_OF_BRASA) as other,
        a_client_of(api, key=ADMIN_TOKEN) as admin,
        a_client_of(api, key="ca_acme") as token,
        a_client_of(api, key="ca_acme", address="203.0.113.7") as token_in_the_office,
    ):
        email: dict[str, Any] = {"to": "ana@example.com", "subject": "a", "text": "b"}
        error_in(await client.post("/v1/email/send", json=email), 403, "FORBIDDEN")
        error_in(await token.get(f"/admin/v1/tenants/{ACME}"), 403, "FORBIDDEN")
        answer_in(await token_in_the_office.get(f"/admin/v1/tenants/{ACME}"))
        answer_in(await other.get("/v1/emails"))
        answer_in(await admin.get(f"/admin/v1/tenants/{ACME}"))

    assert await stored(post) == 0


# --- From ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("news@acme.example", 202),
        ("news@ACME.example", 202),
        ("news@brasa.example", 422),
        (None, 202),
    ],
)
async def test_tenant_sends_from_its_own_domains(
    post: Carteiro, given: str | None, status: int
) -> None:
    """Another From is refused, and stores nothing."""
    acme = Tenant(ACME, from_domains=("acme.example",), default_from="shop@acme.example")
    await post.backend.tenants.define([acme])
    email: dict[str, Any] = {"to": "ana@example.com", "subject": "a", "text": "b"}

    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send", json=email if given is None else email | {"from": given}
        )

    assert response.status_code == status
    assert await stored(post) == (status == 202)
