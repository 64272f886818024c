"""The admin endpoints: tenants, keys, messages, fairness, figures."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from carteiro.api.admin.fairness import Standings
from carteiro.api.admin.keys import KeyList, MadeKey
from carteiro.api.admin.messages import WaitingView
from carteiro.api.admin.stats import Stats
from carteiro.api.admin.tenants import TenantPage, TenantView
from carteiro.api.application import create_api
from carteiro.api.email_documents import EmailPage, EmailView
from carteiro.app import Carteiro
from carteiro.model import ApiLimits, Tenant, TenantId
from support.builders import ACME, BRASA
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_BRASA,
    a_client,
    a_client_of,
    answer_in,
    error_in,
    fields_in,
    sent,
)
from support.library import work

TENANTS = "/admin/v1/tenants"


async def tenant_of(post: Carteiro, name: str) -> Tenant | None:
    """The tenant as stored."""
    [tenant] = await post.backend.tenants.find([TenantId(name)])
    return tenant


# --- tenants ------------------------------------------------------------------------------------


async def test_tenant_is_created_with_all_its_fields(post: Carteiro) -> None:
    """Every field is stored and shown; a PUT without a field resets it."""
    given = {
        "name": "Café Central",
        "tier": "standard",
        "weight": 2.5,
        "cap": 3,
        "ratePerSecond": 10.0,
        "paused": True,
        "defaultFrom": "ola@cafe.example",
        "fromDomains": ["cafe.example"],
        "allowedNetworks": ["203.0.113.0/24"],
        "limits": {"perMinute": 1, "perHour": None, "perDay": 5},
        "retryPreset": "pipeline",
        "externalIdIsKey": True,
        "contact": "ops@cafe.example",
        "automaticRedrive": False,
    }

    async with a_client(post, key=ADMIN_TOKEN) as client:
        made = answer_in(await client.put(f"{TENANTS}/cafe", json=given))
        shown = answer_in(await client.get(f"{TENANTS}/cafe"))
        stored = await tenant_of(post, "cafe")
        bare = answer_in(await client.put(f"{TENANTS}/cafe", json={}))

    TenantView.model_validate(made)
    assert made == shown == given | {"companyId": "cafe", "disabled": False}
    assert stored is not None
    assert stored.limits == ApiLimits(1, None, 5)
    assert stored.from_domains == ("cafe.example",)
    assert (bare["weight"], bare["limits"], bare["paused"]) == (None, None, False)


async def test_patch_changes_only_the_named_fields(post: Carteiro) -> None:
    """Null resets a field to its default."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        await client.put(f"{TENANTS}/{ACME}", json={"name": "Acme", "weight": 2.0, "cap": 7})
        changed = answer_in(
            await client.patch(f"{TENANTS}/{ACME}", json={"weight": None, "tier": "standard"})
        )

    assert (changed["name"], changed["cap"]) == ("Acme", 7)
    assert (changed["weight"], changed["tier"]) == (None, "standard")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_unknown_tier_is_refused(post: Carteiro, method: str) -> None:
    """A typo must not look like a privilege: 422 names the field, and nothing changes."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        before = answer_in(await client.get(f"{TENANTS}/{ACME}"))
        response = await client.request(method, f"{TENANTS}/{ACME}", json={"tier": "glod"})
        after = answer_in(await client.get(f"{TENANTS}/{ACME}"))

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["tier"]
    assert after == before


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_domain_of_another_tenant_is_refused(post: Carteiro, method: str) -> None:
    """One tenant alone may claim it, in any spelling; the same holds for a default From below it."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        await client.put(f"{TENANTS}/brasa", json={"fromDomains": ["açaí.example"]})
        before = answer_in(await client.get(f"{TENANTS}/{ACME}"))
        claim = {"fromDomains": ["acme.example", "XN--AA-4IAZ.example"]}
        claimed = await client.request(method, f"{TENANTS}/{ACME}", json=claim)
        sender = {"defaultFrom": "post@mail.açaí.example"}
        below = await client.request(method, f"{TENANTS}/{ACME}", json=sender)
        after = answer_in(await client.get(f"{TENANTS}/{ACME}"))

    assert (claimed.status_code, below.status_code) == (409, 409)
    assert "claimed by tenant 'brasa'" in claimed.text
    assert after == before


async def test_tenant_id_with_a_slash_is_refused(post: Carteiro) -> None:
    """No URL could name it, in any encoding."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        response = await client.put(f"{TENANTS}/acme%2Fbrasil", json={})

    error_in(response, 404, "NOT_FOUND")
    assert await post.backend.tenants.find([TenantId("acme/brasil")]) == [None]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"weight": 0}, "weight"),
        ({"cap": 0}, "cap"),
        ({"cap": 10**30}, "cap"),
        ({"cap": 1_000_001}, "cap"),
        ({"weight": 1e7}, "weight"),
        ({"name": "\0"}, "name"),
        ({"tier": "\0"}, "tier"),
        ({"ratePerSecond": -1}, "ratePerSecond"),
        ({"fromDomains": ["no domain"]}, "fromDomains"),
        ({"allowedNetworks": ["here"]}, "allowedNetworks"),
        ({"retryPreset": "never"}, "retryPreset"),
        ({"defaultFrom": "nobody"}, "defaultFrom"),
        ({"limits": {"perDay": -1}}, "limits.perDay"),
        ({"limits": {"perDay": 10**30}}, "limits.perDay"),
        ({"colour": "blue"}, "colour"),
    ],
)
async def test_invalid_tenant_is_422(post: Carteiro, given: dict[str, Any], field: str) -> None:
    """The field is named, and nothing changes."""
    before = await tenant_of(post, ACME)

    async with a_client(post, key=ADMIN_TOKEN) as client:
        put = await client.put(f"{TENANTS}/{ACME}", json=given)
        patch = await client.patch(f"{TENANTS}/{ACME}", json=given)

    assert fields_in(error_in(put, 422, "INVALID_VALUE")) == [field]
    assert fields_in(error_in(patch, 422, "INVALID_VALUE")) == [field]
    assert await tenant_of(post, ACME) == before


async def test_tenants_are_listed_page_by_page(post: Carteiro) -> None:
    """By id, without gaps or duplicates."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        first = answer_in(await client.get(TENANTS, params={"limit": 1}))
        second = answer_in(
            await client.get(TENANTS, params={"limit": 1, "cursor": first["nextCursor"]})
        )

    TenantPage.model_validate(first)
    names = [each["companyId"] for page in (first, second) for each in page["items"]]
    assert names == [ACME, BRASA]
    assert second["nextCursor"] is None


@pytest.mark.parametrize(
    ("word", "field", "after"),
    [
        ("disable", "disabled", True),
        ("enable", "disabled", False),
        ("pause", "paused", True),
        ("resume", "paused", False),
    ],
)
async def test_tenant_action_sets_one_flag(
    post: Carteiro, word: str, field: str, after: bool
) -> None:
    """From any earlier state; an unknown tenant is not created."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        await client.patch(f"{TENANTS}/{ACME}", json={"cap": 7, field: not after})
        document = answer_in(await client.post(f"{TENANTS}/{ACME}/{word}"))
        error_in(await client.post(f"{TENANTS}/nobody/{word}"), 404, "NOT_FOUND")

    assert (document[field], document["cap"]) == (after, 7)
    assert await tenant_of(post, "nobody") is None


async def test_erased_tenant_is_gone_and_others_are_not(post: Carteiro) -> None:
    """Its key is refused, it is not found, and the other's e-mail is there."""
    api = create_api(post)

    async with (
        a_client_of(api) as client,
        a_client_of(api, key=KEY_OF_BRASA) as other,
        a_client_of(api, key=ADMIN_TOKEN) as admin,
    ):
        await sent(client)
        kept = await sent(other)
        erased = answer_in(await admin.post(f"{TENANTS}/{ACME}/erase"))
        error_in(await client.get("/v1/emails"), 401, "UNAUTHORIZED")
        error_in(await admin.get(f"{TENANTS}/{ACME}"), 404, "NOT_FOUND")
        listed = answer_in(await other.get("/v1/emails"))

    assert erased["messages"] == 1
    assert [each["outboxId"] for each in listed["items"]] == [kept["outboxId"]]


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [f"{TENANTS}/{BRASA}/keys", "/admin/v1/keys"])
async def test_key_is_shown_once_and_valid_at_once(post: Carteiro, path: str) -> None:
    """Afterwards only its prefix is known."""
    api = create_api(post)

    named = {} if "tenants" in path else {"name": "admin", "role": "admin"}

    async with a_client_of(api, key=ADMIN_TOKEN) as client:
        made = answer_in(await client.post(path, json=named | {"expiresInMs": 60_000}), 201)
        listed = await client.get(path)
        too_many = await client.post(path, json=named)
    async with a_client_of(api, key=made["key"]) as newcomer:
        opens = await newcomer.get("/v1/emails" if "tenants" in path else TENANTS)

    MadeKey.model_validate(made)
    KeyList.model_validate(answer_in(listed))
    assert opens.status_code == 200
    assert made["key"] not in listed.text
    assert made["key"].startswith(listed.json()["items"][0]["hint"])
    assert made["expiresAt"] is not None
    error_in(too_many, 409, "CONFLICT")


async def test_admin_token_can_be_replaced_but_not_revoke_itself(post: Carteiro) -> None:
    """A new one revokes the old one."""
    api = create_api(post)

    async with a_client_of(api, key=ADMIN_TOKEN) as client:
        [old] = answer_in(await client.get("/admin/v1/keys"))["items"]
        error_in(await client.delete(f"/admin/v1/keys/{old['id']}"), 409, "CONFLICT")
        named = {"name": "ana", "role": "admin"}
        made = answer_in(await client.post("/admin/v1/keys", json=named), 201)
        async with a_client_of(api, key=made["key"]) as successor:
            revoked = await successor.delete(f"/admin/v1/keys/{old['id']}")
            again = await successor.delete(f"/admin/v1/keys/{old['id']}")
        error_in(await client.get("/admin/v1/keys"), 401, "UNAUTHORIZED")

    assert revoked.status_code == 204
    error_in(again, 404, "NOT_FOUND")


async def test_key_of_another_tenant_is_not_revoked(post: Carteiro) -> None:
    """A key's id counts together with its tenant."""
    [key] = await post.backend.keys.list(BRASA)

    async with a_client(post, key=ADMIN_TOKEN) as client:
        response = await client.delete(f"{TENANTS}/{ACME}/keys/{key.id}")

    error_in(response, 404, "NOT_FOUND")
    assert (await post.backend.keys.list(BRASA))[0].revoked_at is None


# --- messages -----------------------------------------------------------------------------------


async def messages(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """Ids of the messages that match."""
    document = answer_in(await client.get("/admin/v1/messages", params=query))
    EmailPage.model_validate(document)
    return [each["outboxId"] for each in document["items"]]


async def test_messages_of_every_tenant_are_found_by_provider_id(post: Carteiro) -> None:
    """A provider that reports a message names no tenant."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        await sent(client, to="ok@sandbox.test")
        of_brasa = (await sent(other, to="ok@sandbox.test"))["outboxId"]
    await work(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        shown = answer_in(await admin.get(f"/admin/v1/messages/{of_brasa}"))
        given = shown["sesMessageId"]

        assert await messages(admin, providerId=given) == [of_brasa]
        assert await messages(admin, providerId=given, companyId=BRASA) == [of_brasa]
        assert await messages(admin, providerId=given, companyId=ACME) == []


async def test_messages_of_every_tenant_are_found(post: Carteiro) -> None:
    """All of them, or by tenant, or by kind; each is shown with its events."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        of_acme, of_brasa = (await sent(client))["outboxId"], (await sent(other))["outboxId"]

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        assert await messages(admin) == [of_brasa, of_acme]
        assert await messages(admin, companyId=ACME) == [of_acme]
        assert await messages(admin, kind="email:send") == [of_brasa, of_acme]
        assert await messages(admin, kind="tidy") == []
        assert await messages(admin, providerId="none") == []
        shown = answer_in(await admin.get(f"/admin/v1/messages/{of_brasa}"))

    EmailView.model_validate(shown)
    assert (shown["companyId"], len(shown["events"])) == (BRASA, 1)


async def test_waiting_message_explains_its_wait(post: Carteiro) -> None:
    """With a code for programs and a sentence for people."""
    async with a_client(post) as client:
        scheduled = await sent(client, scheduledAt="2199-01-01T00:00:00Z")

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        told = answer_in(await admin.get(f"/admin/v1/messages/{scheduled['outboxId']}/explain"))
        await admin.post(f"{TENANTS}/{ACME}/pause")
        held = answer_in(await admin.get(f"/admin/v1/messages/{scheduled['outboxId']}/explain"))

    WaitingView.model_validate(told)
    assert (told["why"], told["until"]) == ("scheduled", "2199-01-01T00:00:00.000Z")
    assert told["estimate"] | {"text": ""} == {
        "earliest": told["until"],
        "latest": None,
        "ahead": 0,
        "perMinute": None,
        "text": "",
    }
    assert held["why"] == "tenant_paused"
    assert held["estimate"]["earliest"] is None


@pytest.mark.parametrize("path", ["", "/explain"])
async def test_unknown_message_is_not_found(post: Carteiro, path: str) -> None:
    """With any text as its id."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        for unknown in ("x", "%00", "01900000-0000-7000-8000-000000000001"):
            response = await admin.get(f"/admin/v1/messages/{unknown}{path}")
            error_in(response, 404, "NOT_FOUND")


async def test_message_of_any_tenant_is_cancelled(post: Carteiro) -> None:
    """As by the tenant itself: once, and not after it was sent."""
    async with a_client(post, key=KEY_OF_BRASA) as client:
        done = (await sent(client, to="ok@sandbox.test"))["outboxId"]
        await work(post)
        waiting = (await sent(client, scheduledAt="2199-01-01T00:00:00Z"))["outboxId"]

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        cancelled = answer_in(await admin.post(f"/admin/v1/messages/{waiting}/cancel"))
        shown = answer_in(await admin.get(f"/admin/v1/messages/{waiting}"))
        again = await admin.post(f"/admin/v1/messages/{waiting}/cancel")
        late = await admin.post(f"/admin/v1/messages/{done}/cancel")
        unknown = await admin.post(f"/admin/v1/messages/{ACME}/cancel")

    assert cancelled == {"outboxId": waiting, "status": "CANCELLED", "cancelRequested": False}
    assert shown["status"] == "CANCELLED"
    error_in(again, 409, "CONFLICT")
    error_in(late, 409, "CONFLICT")
    error_in(unknown, 404, "NOT_FOUND")


# --- figures ------------------------------------------------------------------------------------


async def test_figures_are_those_of_the_store(post: Carteiro) -> None:
    """States, depths and dead letters, and the standing of each tenant."""
    async with a_client(post) as client:
        await sent(client, to="ok@sandbox.test")
        await sent(client, to="bounce-550@sandbox.test")
        await work(post)
        await sent(client, scheduledAt="2199-01-01T00:00:00Z")
    stay = timedelta(seconds=5)
    await post.backend.rates.draw("smtp", 1, process="one", stay=stay, ceiling=20.0)
    await post.backend.rates.report("smtp", why="NETWORK_ERROR: away", wait=stay)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        stats = answer_in(await admin.get("/admin/v1/stats"))
        standings = answer_in(await admin.get("/admin/v1/standings"))

    Stats.model_validate(stats)
    Standings.model_validate(standings)
    assert stats["states"] == {"SENT": 1, "FAILED": 1, "ENQUEUED": 1}
    assert stats["deadLetters"] == {
        "total": 1,
        "byReason": {"permanent_error": 1},
        "byCompany": [{"companyId": ACME, "count": 1}],
    }
    assert [each["unfinished"] for each in stats["depths"]] == [1]
    [smtp] = stats["providers"]
    assert smtp.pop("troubleAt")
    assert smtp == {
        "provider": "smtp",
        "rate": 20.0,
        "ceiling": 20.0,
        "processes": 1,
        "isOpen": True,
        "trouble": "NETWORK_ERROR: away",
    }
    [acme] = [each for each in standings["items"] if each["companyId"] == ACME]
    assert (acme["totalProcessed"], acme["inFlight"]) == (2, 0)


async def test_fairness_in_force_is_shown(post: Carteiro) -> None:
    """It says if it was changed at run time, or is as configured."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        configured = answer_in(await admin.get("/admin/v1/fairness"))
        await admin.put("/admin/v1/fairness", json={"maxJobsPerTenantBatch": 7})
        tuned = answer_in(await admin.get("/admin/v1/fairness"))
        await admin.delete("/admin/v1/fairness")
        back = answer_in(await admin.get("/admin/v1/fairness"))

    assert configured == back
    assert configured == {
        "enableRoundRobin": True,
        "maxJobsPerTenantBatch": 3,
        "roundRobinBasePriority": 5,
        "priorityIncrementPerRound": 1,
        "maxRoundRobinPriority": 1,
        "isOverride": False,
    }
    assert tuned == configured | {"maxJobsPerTenantBatch": 7, "isOverride": True}


async def test_fairness_is_changed_at_run_time(post: Carteiro) -> None:
    """For all workers, until it is reset; invalid values are refused."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        tuned = await admin.put("/admin/v1/fairness", json={"roundRobinBasePriority": 9})
        await post.send(tenant=ACME, to="ok@sandbox.test", subject="a", text="b")
        [standing] = answer_in(await admin.get("/admin/v1/standings"))["items"]
        back = await admin.delete("/admin/v1/fairness")
        [usual] = answer_in(await admin.get("/admin/v1/standings"))["items"]
        bad = await admin.put("/admin/v1/fairness", json={"maxJobsPerTenantBatch": 0})

    assert (tuned.status_code, back.status_code) == (204, 204)
    assert (standing["currentPriority"], usual["currentPriority"]) == (9, 5)
    assert fields_in(error_in(bad, 422, "INVALID_VALUE")) == ["maxJobsPerTenantBatch"]
