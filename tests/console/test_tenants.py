"""Pages of tenants: the list, one with its share, and changes that really happen, with their audit rows."""

import re

from carteiro.app import Carteiro
from carteiro.model import AuditFilter, Role, TenantId, Via
from support.builders import ACME, BRASA, a_tenant
from support.console import Person, a_console, a_person, a_token
from support.http import a_client, sent
from support.library import work

HOSTILE = '<img src=x onerror="alert(1)">'


async def test_list_shows_who_waits_and_opens_a_tenant(post: Carteiro) -> None:
    """Fifty a page, by id; the field opens one of them."""
    await post.backend.tenants.define([a_tenant(f"t{number:03}") for number in range(60)])
    async with a_client(post) as client:
        await sent(client, scheduledAt="2199-01-01T00:00:00Z")
    async with a_person(post) as person:
        first = await person.page("tenants")
        [following] = re.findall(r'rel="next" href="/console/([^"]+)"', first)
        assert (first + await person.page(following)).count("<tr data-row>") == 62
        assert "<h1>acme</h1>" in await person.page("tenants", tenant="acme")
        assert "no such tenant" in await person.page("tenants", 404, tenant="nobody")


async def test_names_of_tenants_are_texts(post: Carteiro) -> None:
    """In the list and on a page of their own, whatever is in them."""
    strange = TenantId("a b?c#d <b>")
    await post.backend.tenants.define([a_tenant(strange, name=HOSTILE)])
    async with a_person(post) as person:
        listed = (await person.get("tenants")).text
        assert HOSTILE not in listed
        [link] = re.findall(r'href="/console/(tenants/a%20b[^"]+)"', listed)
        page = (await person.get(link)).text
        assert "<h1>a b?c#d &lt;b&gt;</h1>" in page
        assert HOSTILE not in page
        paused = await person.sent(f"{link}/pause", {"confirmed": "yes"})
        assert "Paused: messages are accepted" in paused.text
        found = await person.get("tenants", params={"tenant": strange})
        assert "<h1>a b?c#d &lt;b&gt;</h1>" in found.text


async def test_share_served_is_shown_against_weight(post: Carteiro) -> None:
    """As a chart, as tiles and in both ranges; a tenant's own token sees nothing of others."""
    await post.backend.tenants.define([a_tenant(ACME, weight=4.0)])
    async with a_client(post) as client:
        for _ in range(3):
            await sent(client)
    await work(post)
    await post.backend.rollups.fold(limit=1000, most=100)
    await a_token(post.backend, "of acme", tenant=ACME)

    async with (
        a_console(post) as (address, _),
        Person.at(address) as admin,
        Person.at(address) as own,
    ):
        await admin.signed_in()
        for asked in ("1h", "24h"):
            page = await admin.page("tenants/acme", range=asked)
            assert "by weight: 100 %" in page
            assert "Jain index" in page
            assert "<svg" in page.partition("Share served against weight")[2]
        assert "no such range" in await admin.page("tenants/acme", 404, range="9y")
        await own.signed_in("ca_of acme")
        page = await own.page("tenants/acme")
        assert "Jain index" not in page
        assert "by weight" not in page
        assert "Save" not in page  # limits are not its own to change


async def test_switches_and_settings_change_the_tenant(post: Carteiro) -> None:
    """After a question, as the person who is signed in; and what others changed meanwhile stays."""
    async with a_person(post) as person:
        assert "Are you sure?" in (await person.sent("tenants/acme/pause")).text
        [tenant] = await post.backend.tenants.find([ACME])
        assert tenant is not None
        assert not tenant.paused
        yes = {"confirmed": "yes"}
        assert "Paused" in (await person.sent("tenants/acme/pause", yes)).text
        assert "Disabled" in (await person.sent("tenants/acme/disable", yes)).text
        [tenant] = await post.backend.tenants.find([ACME])
        assert tenant is not None
        assert tenant.paused
        assert tenant.disabled
        await person.sent("tenants/acme/resume")
        await person.sent("tenants/acme/enable")

        await post.backend.tenants.define([a_tenant(ACME, cap=7, name="Acme")])
        form = {
            "was_name": "",
            "name": HOSTILE,
            "was_cap": "",
            "cap": "",  # no cap when it was shown
            "was_weight": "",
            "weight": "2.5",
            "contact": "ops@acme.test",
            "limits": "own",
            "was_limits": "usual",
            "per_minute": "5",
            "from_domains": "acme.test, mail.acme.test",
        }
        answer = await person.sent("tenants/acme/settings", form)
        assert "Saved" in answer.text
        assert HOSTILE not in answer.text
        [tenant] = await post.backend.tenants.find([ACME])
        assert tenant is not None
        assert (tenant.cap, tenant.weight, tenant.name) == (7, 2.5, HOSTILE)
        assert tenant.limits is not None
        assert (tenant.limits.per_minute, tenant.limits.per_day) == (5, None)
        assert tenant.from_domains == ("acme.test", "mail.acme.test")
        for bad in ({"weight": "x"}, {"weight": "-1"}, {"contact": "nobody"}, {"tier": "gold"}):
            answer = await person.sent("tenants/acme/settings", bad)
            assert answer.status_code == 422, bad

        assert "is there" in (await person.sent("tenants", {"tenant": "nova"})).text
        assert (await person.sent("tenants", {"tenant": ""})).status_code == 422

    rows = (await post.backend.audit.list(AuditFilter(kind="tenant"), limit=50)).rows
    ours = [each.action for each in rows if each.via is Via.CONSOLE]
    assert {"pause", "resume", "disable", "enable"} <= {*ours}
    assert all(each.who for each in rows)


async def test_key_is_shown_once_and_can_be_revoked(post: Carteiro) -> None:
    """It works until then; the page of the tenant never has it."""
    async with a_person(post) as person:
        for bad in ({"days": "x"}, {"days": "0"}, {"days": "", "name": "a b@"}, {}):
            assert (await person.sent("tenants/brasa/keys", bad)).status_code == 422, bad
        made = await person.sent("tenants/brasa/keys", {"name": "ci", "days": "30"})
        [secret] = re.findall(r"<code>(ck_[\w-]+)</code>", made.text)
        assert secret not in await person.page("tenants/brasa")
        key = next(each for each in await post.backend.keys.list(BRASA) if each.name == "ci")
        async with a_client(post, key=secret) as client:
            await sent(client)
        gone = await person.sent(f"tenants/brasa/keys/{key.id}/revoke", {"confirmed": "yes"})
        assert "revoked" in gone.text
        again = await person.sent(f"tenants/brasa/keys/{key.id}/revoke", {"confirmed": "yes"})
        assert again.status_code == 404


async def test_changes_keep_to_roles_and_limits(post: Carteiro) -> None:
    """An operator pauses and changes no limits; a tenant's own token makes as many changes as over the API."""
    await a_token(post.backend, "op", role=Role.OPERATOR)
    await a_token(post.backend, "acme op", role=Role.OPERATOR, tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as person:
        await person.signed_in("ca_op")
        assert (await person.sent("tenants/acme/settings", {"cap": "1"})).status_code == 403
        assert (await person.sent("tenants/acme/keys", {"days": ""})).status_code == 403
        assert (await person.sent("tenants/acme/pause", {"confirmed": "yes"})).status_code == 200
    async with a_console(post) as (address, _), Person.at(address) as own:
        await own.signed_in("ca_acme op")
        assert (await own.sent("tenants/brasa/pause", {"confirmed": "yes"})).status_code == 404
        most = post.settings.api.changes_per_minute
        statuses = [(await own.sent("tenants/acme/resume")).status_code for _ in range(most + 1)]
        assert statuses[-1] == 429
        assert {*statuses[: most - 1]} == {200}
