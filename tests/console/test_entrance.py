"""Sign-in: with a token, by the one-time link, by a proxy; and everything that must not let anybody in."""

import re
from datetime import timedelta

import httpx
import pytest

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.config import load
from carteiro.console.attempts import MOST_OF_ONE
from carteiro.console.door import LINK_LASTS, Links
from carteiro.console.site import add_console
from carteiro.errors import ConfigError
from carteiro.model import AuditFilter, Role, Tenant, Via
from support.builders import ACME
from support.console import Person, a_console, a_person, a_token
from support.http import ADMIN_TOKEN, KEY_OF_ACME, opened

SIGN_IN = "<h1>Sign in</h1>"
PROXY = {"api.trusted_proxies": "127.0.0.1", "console.user_header": "X-User"}


def a_cookie(answer: httpx.Response, name: str) -> str:
    """The header that set this cookie."""
    return next(
        each for each in answer.headers.get_list("set-cookie") if each.startswith(f"{name}=")
    )


# --- with a token -------------------------------------------------------------------------------


async def test_token_opens_the_page_that_was_asked_for(post: Carteiro) -> None:
    """A deep link leads through the sign-in, with its filters; the secret is in no address and no page."""
    async with a_person(post, None) as person:
        asked = await person.get("audit", params={"who": "ana"})
        fields = {"token": f" {ADMIN_TOKEN} ", "next": "/console/audit?who=ana"}
        answer = await person.sent("sign-in", fields)

    assert asked.url.path == "/console/sign-in"
    assert asked.url.params["next"] == "/console/audit?who=ana"
    assert str(answer.url).endswith("/console/audit?who=ana")
    assert ADMIN_TOKEN not in answer.text
    cookie = a_cookie(answer.history[0], "carteiro")
    for part in ("HttpOnly", "SameSite=strict", "Path=/console", "Max-Age=43200"):
        assert part in cookie, cookie
    assert ADMIN_TOKEN not in cookie


async def test_sign_in_is_known_to_every_process_and_recorded(post: Carteiro) -> None:
    """The second process has only the store and the cookie."""
    async with a_console(post) as (one, _), a_console(post) as (other, _), Person.at(one) as person:
        await person.signed_in()
        async with Person.at(other, cookies=dict(person.cookies)) as elsewhere:
            assert "<h1>Audit</h1>" in await elsewhere.page("audit")

    [row] = (await post.backend.audit.list(AuditFilter(action="sign-in"))).rows
    assert (row.via, row.who, row.origin) == (Via.CONSOLE, "admin", "127.0.0.1")


async def test_key_other_than_an_admin_token_does_not_sign_in(post: Carteiro) -> None:
    """A tenant's key, an unknown token, none, and one that expired: all get the same answer."""
    await a_token(post.backend, "old", expires_in=timedelta(0))
    async with a_person(post, None) as person:
        for token in (KEY_OF_ACME, "ca_unknown", "", "ca_old", "x" * 10_000, "\x00é"):
            answer = await person.sent("sign-in", {"token": token})
            assert answer.status_code == 401, token
            assert "not a live admin token" in answer.text
            assert "carteiro" not in person.cookies
        assert SIGN_IN in await person.page("audit")


async def test_attempts_are_limited_for_each_address(post: Carteiro) -> None:
    """Then also the right token is refused, from there, until the minute is over."""
    async with a_person(post, None) as person:
        for _ in range(MOST_OF_ONE):
            await person.sent("sign-in", {"token": "ca_unknown"})
        answer = await person.sent("sign-in", {"token": ADMIN_TOKEN})

    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


async def test_sign_in_ends_with_its_token(post: Carteiro) -> None:
    """Revoked, or of a disabled tenant: the next page asks to sign in again."""
    revoked = await a_token(post.backend, "ana", role=Role.ADMIN)
    await a_token(post.backend, "of acme", tenant=ACME)
    async with (
        a_console(post) as (address, _),
        Person.at(address) as ana,
        Person.at(address) as bia,
    ):
        await ana.signed_in("ca_ana")
        await bia.signed_in("ca_of acme")
        await post.backend.keys.revoke([revoked.id], tenant=None)
        await post.backend.tenants.define([Tenant(ACME, disabled=True)])

        assert SIGN_IN in await ana.page("audit")
        assert SIGN_IN in await bia.page("audit")


async def test_sign_out_ends_the_sign_in_on_the_server(post: Carteiro) -> None:
    """A copy of the cookie is of no use."""
    async with a_console(post) as (address, _), Person.at(address) as person:
        await person.signed_in()
        async with Person.at(address, cookies=dict(person.cookies)) as thief:
            assert "<h1>Audit</h1>" in await thief.page("audit")
            await person.sent("sign-out")
            assert SIGN_IN in await thief.page("audit")
        assert SIGN_IN in await person.page("audit")


async def test_sign_in_leads_to_no_other_site(post: Carteiro) -> None:
    """Wherever a link to the form says to go."""
    async with a_console(post) as (address, _):
        for going in (
            "https://evil.example/",
            "//evil.example/",
            "/console//evil.example/",
            "/console/\\evil.example",
            "/console/../admin/v1/keys",
            "/console/a\r\nSet-Cookie: a=b",
            "javascript:alert(1)",
        ):
            async with Person.at(address) as person:
                answer = await person.sent("sign-in", {"token": ADMIN_TOKEN, "next": going})
                assert str(answer.url).startswith(f"{address}/console/"), going
                assert "a" not in person.cookies


async def test_token_of_a_tenant_works_only_from_its_networks(post: Carteiro) -> None:
    await post.backend.tenants.define([Tenant(ACME, allowed_networks=("192.0.2.0/24",))])
    await a_token(post.backend, "of acme", tenant=ACME)

    async with a_person(post, None) as person:
        answer = await person.sent("sign-in", {"token": "ca_of acme"})

    assert answer.status_code == 403
    assert "carteiro" not in person.cookies


# --- forms of others ----------------------------------------------------------------------------


async def test_form_of_another_page_is_refused(post: Carteiro) -> None:
    """By its origin, and by its token; also where the other check would pass."""
    async with (
        a_console(post) as (address, _),
        Person.at(address) as person,
        Person.at(address) as other,
    ):
        await person.signed_in()
        foreign = await other.form_token()
        before = await person.form_token()
        for fields, headers in (
            ({}, {"Origin": "https://evil.example"}),
            ({}, {"Origin": "null"}),
            ({}, {"Origin": ""}),
            ({}, {"Origin": "http://["}),
            ({}, {"Origin": f"{address}.evil.example"}),
            ({}, {"Origin": address.replace("127.0.0.1", "localhost")}),
            ({"form_token": ""}, {}),
            ({"form_token": foreign}, {}),
            ({"form_token": "é"}, {}),
        ):
            answer = await person.sent("sign-out", fields, headers=headers)
            assert answer.status_code == 403, (fields, headers)
        silent = await person.post("sign-out", data={"form_token": before})
        cross = await person.post(
            "sign-out", data={"form_token": before}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert (silent.status_code, cross.status_code) == (403, 403)
        assert "<h1>Audit</h1>" in await person.page("audit")


async def test_form_is_read_within_bounds(post: Carteiro) -> None:
    """Other types, too many fields and bad bytes are refused."""
    async with a_person(post) as person:
        headers = {"Origin": person.origin}
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for status, content, more in (
            (415, b"{}", {"Content-Type": "application/json"}),
            (415, b"a=b", {"Content-Type": "text/plain"}),
            (400, b"a=1&" * 2000, form),
            (400, b"\xff=1", form),
            (413, b"a" * 3_000_000, form),
        ):
            answer = await person.post("choices", content=content, headers=headers | more)
            assert answer.status_code == status, more
    async with a_person(post, None) as stranger:
        headers = {"Origin": stranger.origin}
        large = await stranger.post("sign-in", content=b"%41" * 30_000, headers=headers | form)
        assert large.status_code == 413


# --- by the link of this machine ----------------------------------------------------------------


async def test_link_signs_in_once(post: Carteiro) -> None:
    """Looking at its address does not use it up; the user of the machine is named in audit rows."""
    async with a_console(post) as (address, console):
        link = console.door.links.make()
        async with Person.at(address) as first, Person.at(address) as second:
            assert "Sign in on this machine" in await first.page(f"link/{link}")
            assert "Sign in on this machine" in await second.page(f"link/{link}")
            assert (await first.sent(f"link/{link}")).status_code == 200
            assert "<h1>Audit</h1>" in await first.page("audit")

            assert (await second.sent(f"link/{link}")).status_code == 404
            assert "This link is over" in await second.page(f"link/{link}", 404)
            assert SIGN_IN in await second.page("audit")

    [row] = (await post.backend.audit.list(AuditFilter(action="sign-in"))).rows
    assert (row.via, row.key_id) == (Via.CONSOLE, None)


async def test_link_works_only_on_this_machine_under_its_own_name() -> None:
    """Not through a proxy that serves others, and not under a name that leads here; so does its cookie."""
    async with (
        opened("memory://", **{"api.trusted_proxies": "127.0.0.1"}) as post,
        a_console(post) as (address, console),
        Person.at(address) as person,
    ):
        link = console.door.links.make()
        for headers in ({"X-Forwarded-For": "192.0.2.1"}, {"Host": "evil.example"}):
            origin = {"Origin": f"http://{headers.get('Host', address[7:])}"}
            answer = await person.sent(f"link/{link}", headers=headers | origin)
            assert answer.status_code == 404, headers
        port = address.rpartition(":")[2]
        for host in (f"localhost:{port}", f"[::1]:{port}", f"127.0.0.1:{port}", "localhost"):
            found = await person.get(f"link/{link}", headers={"Host": host})
            assert found.status_code == 200, host


async def test_link_is_over_after_its_time_and_when_there_is_a_new_one() -> None:
    """And an empty one never works."""
    now = [0.0]
    links = Links(clock=lambda: now[0])
    assert not links.is_valid("")
    old, new = links.make(), links.make()
    assert not links.is_valid(old)
    assert links.is_valid(new)
    now[0] += LINK_LASTS.total_seconds()
    assert not links.use(new)


# --- by a proxy ---------------------------------------------------------------------------------


async def test_proxy_names_the_user() -> None:
    """With the role of the settings, without a cookie; the forms of such a user are protected as any."""
    async with (
        opened("memory://", **PROXY, **{"console.user_role": "operator"}) as post,
        a_console(post) as (address, _),
    ):
        named = {"X-User": "ana", "X-Forwarded-For": "192.0.2.1"}
        async with Person.at(address, headers=named) as person:
            page = await person.page("audit")
            chosen = await person.sent("choices", {"language": "pt"})
            foreign = await person.sent("choices", {"form_token": "0" * 64})
    assert '<span class="who">ana</span>' in page
    assert '<span class="role">operator' in page
    assert "Sign out" not in page
    assert chosen.status_code == 200
    assert foreign.status_code == 403


async def test_header_of_anybody_else_names_nobody(post: Carteiro) -> None:
    """Not from an address other than a trusted proxy; not a wrong header; and two names are none."""
    trusting = {"api.trusted_proxies": "192.0.2.9", "console.user_header": "X-User"}
    async with (
        opened("memory://", **trusting) as office,
        a_console(office) as (address, _),
        Person.at(address, headers={"X-User": "ana"}) as person,
    ):
        assert SIGN_IN in await person.page("audit")
    async with opened("memory://", **PROXY) as office, a_console(office) as (address, _):
        for headers in ({"X-User": ""}, {"X_User": "ana"}, {}):
            async with Person.at(address, headers=headers) as person:
                assert SIGN_IN in await person.page("audit"), headers
        async with Person.at(address) as person:
            for names in ([b"ana", b"bia"], [b"ana\xad"], [b"a" * 200]):
                answer = await person.get("audit", headers=[(b"X-User", each) for each in names])
                assert answer.status_code == 403, names


async def test_header_of_users_needs_trusted_proxies() -> None:
    """Otherwise anybody could be anybody: the process does not start."""
    async with opened("memory://", **{"console.user_header": "X-User"}) as post:
        with pytest.raises(ConfigError, match="trusted_proxies"):
            add_console(create_api(post), post)


async def test_cookies_behind_https_are_secure() -> None:
    """Only a trusted proxy can say that it is https; a cookie that http has set does not count there."""
    async with (
        opened("memory://", **{"api.trusted_proxies": "127.0.0.1"}) as post,
        a_console(post) as (address, _),
    ):
        https = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
        async with Person.at(address, headers=https) as person:
            seed = a_cookie(await person.get("sign-in"), "__Host-carteiro_seed")
            for part in ("Secure", "Path=/;", "HttpOnly", "SameSite=strict"):
                assert part in f"{seed};", seed
        async with Person.at(address) as plain:
            await plain.signed_in()
            copied = {"Cookie": "; ".join(f"{n}={v}" for n, v in plain.cookies.items())}
            assert SIGN_IN in (await plain.get("audit", headers=https | copied)).text


async def test_console_can_be_left_out(post: Carteiro) -> None:
    """The setting; and the API is the same without it."""
    assert load(environ={}).console.enabled
    assert not load(environ={"CARTEIRO_CONSOLE_ENABLED": "false"}).console.enabled
    assert not re.search("console", str(create_api(post).routes))
