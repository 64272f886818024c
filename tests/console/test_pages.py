"""Every page: for every role as the table of rights says, with safe headers, without scripts, in every language."""

import re
from html import escape
from pathlib import Path

import pytest

import carteiro.console
from carteiro.app import Carteiro
from carteiro.console.page import ANYONE
from carteiro.console.site import Console
from carteiro.console.words import LANGUAGES
from carteiro.model import Actor, Role, TenantId, Via
from carteiro.runtime.acting import acting_as
from support.builders import ACME, BRASA, a_tenant
from support.console import Person, a_console, a_person, a_token, filled, values_of_paths
from support.every_endpoint import SECRET, snapshot

CONSOLE = Path(str(carteiro.console.__file__)).parent
_ELSEWHERE = re.compile(r"""(?:src|href|url|action|import)\s*[=(]\s*["']?(?:https?:)?//""")
_FORBIDDEN = re.compile(
    r"""<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:|\|\s*safe\b"""
)
HOSTILE = '<img src=x onerror="alert(1)">'


def addresses(console: Console, values: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
    """Method, path and address of each page but the stream."""
    found = []
    for method, path in console.shown:
        own = values.get(path.partition("/")[0], {})
        address = filled(path, own)
        found += [(method, path, address)] if path != "live" else []
    return found


@pytest.mark.parametrize("tenant", [None, ACME, BRASA])
@pytest.mark.parametrize("role", list(Role))
async def test_every_page_keeps_to_the_table_of_rights(
    post: Carteiro, role: Role, tenant: TenantId | None
) -> None:
    """Refused with 403 or 404, without a trace of another tenant's things; and nothing is changed."""
    things = await values_of_paths(post)
    await a_token(post.backend, "under test", role=role, tenant=tenant)
    before = await snapshot(post, things)

    async with a_console(post) as (address, console), Person.at(address) as person:
        await person.signed_in("ca_under test")
        form = await person.form_token()
        for method, path, target in addresses(console, things):
            right = console.shown[method, path].right
            if right is None:
                continue
            # A form without its fields changes nothing: it is not what is asked here.
            answer = await person.request(
                method,
                target,
                headers={"Origin": person.origin},
                data={"form_token": form, "confirmed": ""} if method == "POST" else None,
            )
            said = (method, path, answer.status_code)
            is_theirs = tenant is None or right.scoped
            if not is_theirs or not role.covers(right.least):
                is_of_others = tenant == BRASA and "{tenant}" in path  # which are not even there
                assert answer.status_code == (404 if is_of_others and is_theirs else 403), said
            elif tenant == BRASA and "{" in path and not console.shown[method, path].confirms:
                assert answer.status_code in {400, 404, 409, 422}, said
            else:
                assert answer.status_code in {200, 400, 404, 409, 422}, said
            assert tenant != BRASA or SECRET not in answer.text, said

    if role is Role.VIEWER or tenant == BRASA:
        assert await snapshot(post, things) == before


async def test_nobody_sees_a_page_without_signing_in(post: Carteiro) -> None:
    """Pages lead to the sign-in, changes are refused."""
    things = await values_of_paths(post)
    async with a_console(post) as (address, console), Person.at(address) as person:
        form = await person.form_token()
        for method, path, target in addresses(console, things):
            if console.shown[method, path].needs == ANYONE:
                continue
            headers = {"Origin": person.origin}
            data = {"form_token": form} if method == "POST" else None
            answer = await person.request(method, target, headers=headers, data=data)
            expected = 401 if method == "POST" else 200
            assert answer.status_code == expected, path
            assert "Admin token" in answer.text or answer.status_code == 401, path


async def test_menu_has_only_what_the_viewer_may_see(post: Carteiro) -> None:
    """Each entry leads to a page that opens."""
    await a_token(post.backend, "of acme", tenant=ACME)
    for token in ("ca_of acme", "ca_admin"):
        async with a_person(post, token) as person:
            links = set(re.findall(r'<li><a href="/console/([a-z-]*)"', await person.page()))
            assert "audit" in links
            for each in links:
                await person.page(each)


async def test_every_answer_has_safe_headers(post: Carteiro) -> None:
    """Pages, refusals, redirects and files: no frames, no sniffing, no scripts but ours, and nothing kept."""
    things = await values_of_paths(post)
    async with a_console(post) as (address, console), Person.at(address) as person:
        await person.signed_in()
        person.follow_redirects = False
        for method, path, target in [
            *addresses(console, things),
            ("GET", "", "nothing"),
            ("PUT", "", "audit"),
        ]:
            answer = await person.request(method, target)
            policy = answer.headers["content-security-policy"]
            assert "unsafe-inline" not in policy.partition("sandbox")[0], path
            assert "unsafe-eval" not in policy
            assert "default-src 'none'" in policy, path
            assert "frame-ancestors 'none'" in policy or "frame-ancestors 'self'" in policy, path
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] in {"same-origin", "no-referrer"}
            assert answer.headers["cache-control"] == "no-store", path
        page = await person.get("")
        files = re.findall(r'(?:src|href)="/console/(static/[^"]+)"', page.text)
        assert len(set(files)) == 3
        for each in files:
            file = await person.get(each)
            assert "immutable" in file.headers["cache-control"]
            assert file.headers["x-content-type-options"] == "nosniff"
            again = await person.get(each, headers={"If-None-Match": file.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert (await person.get("static/../site.py")).status_code == 404


def test_templates_load_nothing_from_elsewhere_and_have_no_inline_code() -> None:
    """The policy would block it; and nothing is marked as safe in a template."""
    for file in sorted(CONSOLE.rglob("*.*")):
        if file.suffix in {".html", ".css", ".js", ".svg"}:
            text = file.read_text("utf-8")
            assert not _ELSEWHERE.search(text), file
            assert file.suffix != ".html" or not _FORBIDDEN.search(text), file


async def test_pages_are_in_the_language_and_theme_of_choice(post: Carteiro) -> None:
    """By the browser; by choice; and the choice is kept."""
    async with a_person(post) as person:
        portuguese = await person.get("audit", headers={"Accept-Language": "pt-BR"})
        assert '<html lang="pt-BR">' in portuguese.text
        assert "<h1>Auditoria</h1>" in portuguese.text
        chosen = {"language": "pt", "theme": "dark", "next": "/console/audit?who=x"}
        answer = await person.sent("choices", chosen)
        assert str(answer.url).endswith("/console/audit?who=x")
        assert '<html lang="pt-BR" data-theme="dark">' in answer.text
        await person.sent("choices", {"language": "xx", "theme": "<b>"})
        assert '<html lang="pt-BR" data-theme="dark">' in await person.page()


async def test_every_page_is_whole_in_every_language(post: Carteiro) -> None:
    """No word is missing: an unknown one is an error."""
    things = await values_of_paths(post)
    async with a_console(post) as (address, console), Person.at(address) as person:
        await person.signed_in()
        for language in LANGUAGES:
            for method, path, target in addresses(console, things):
                if method == "GET":
                    answer = await person.get(target, headers={"Accept-Language": language})
                    assert answer.status_code in {200, 404}, (path, answer.text)


async def test_errors_say_what_to_do(post: Carteiro) -> None:
    """An unknown page, a bad filter, a method that a page does not have."""
    async with a_person(post) as person:
        assert "There is no page at this address" in await person.page("nothing", 404)
        assert "should be a time" in await person.page("audit", 422, since="yesterday")
        assert "is not a cursor" in await person.page("audit", 422, cursor="x")
        assert (await person.put("audit")).status_code == 405
        assert (await person.get(f"{person.origin}/console")).url.path == "/console/"


async def test_address_is_read_within_bounds(post: Carteiro) -> None:
    """A page repeats it in hundreds of links."""
    async with a_person(post) as person:
        for query in ({"x": "<" * 20_000}, {f"x{number}": "" for number in range(200)}):
            assert "too long" in await person.page("audit", 400, **query)
        page = (await person.get("audit", params={"x": "<&" * 1000, "action": "sign-in"})).text
        assert "%3C%26" * 1000 in page


# --- the audit page -----------------------------------------------------------------------------


async def test_audit_page_lists_filters_and_pages(post: Carteiro) -> None:
    """Filters are in the address, and each can be removed; a tenant's own token sees its rows alone."""
    with acting_as(Actor(Via.CLI, "ana", "host")):
        for number in range(60):
            await post.backend.tenants.define([a_tenant(ACME, cap=number + 1)])
        await post.backend.tenants.define([a_tenant(BRASA, cap=1)])
    await a_token(post.backend, "of acme", tenant=ACME)

    async with (
        a_console(post) as (address, _),
        Person.at(address) as admin,
        Person.at(address) as own,
    ):
        await admin.signed_in()
        first = await admin.page("audit", who="ana", tenant="", kind="tenant")
        following = re.search(r'rel="next" href="/console/([^"]+)"', first)
        assert following
        second = await admin.page(following[1].replace("&amp;", "&"))
        assert (first + second).count("<tr data-row>") == 61
        assert 'href="/console/audit?kind=tenant"' in first  # without the filter on who
        assert "No change matches" in await admin.page("audit", who="nobody")
        assert "brasa" in await admin.page("audit", tenant=BRASA)

        await own.signed_in("ca_of acme")
        seen = await own.page("audit")
        assert "acme" in seen
        assert f">{BRASA}<" not in seen
        assert "no such tenant" in await own.page("audit", 404, tenant=BRASA)


async def test_texts_of_others_are_escaped(post: Carteiro) -> None:
    """Names in rows, filters in the address, and what was chosen: shown as they are, never run."""
    with acting_as(Actor(Via.CLI, HOSTILE, HOSTILE)):
        await post.backend.tenants.define([a_tenant(TenantId(HOSTILE), cap=1)])
    async with a_person(post) as person:
        for query in ({}, {"who": HOSTILE}, {"object": HOSTILE, "tenant": HOSTILE}):
            text = (await person.get("audit", params=query)).text
            assert HOSTILE not in text
            assert escape(HOSTILE, quote=True).replace("&quot;", "&#34;") in text
        failed = await person.get(f"audit/{HOSTILE}")
        assert HOSTILE not in failed.text
