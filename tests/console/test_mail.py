"""Mails in a frame, over real connections. What a browser makes of them is in ``test_mail_in_browser.py``."""

import base64
from typing import Any

from carteiro.app import Carteiro
from carteiro.model import Role
from support.builders import ACME, BRASA
from support.console import Person, a_console, a_person, a_token
from support.http import a_client, an_email, answer_in

PICTURE = base64.b64encode(b"\x89PNG a picture").decode()
ACTIVE = (
    "link",
    "meta",
    "base",
    "script",
    "iframe",
    "frame",
    "frameset",
    "object",
    "embed",
    "applet",
    "portal",
)


async def a_mail(post: Carteiro, **fields: Any) -> str:
    """The id of a message of ACME's with these fields."""
    async with a_client(post) as client:
        answer = await client.post("/v1/email/send", json=an_email(**fields))
    return str(answer_in(answer, 202)["outboxId"])


async def test_frame_allows_nothing_but_looks(post: Carteiro) -> None:
    """Its own origin, no scripts, no forms, no requests, shown by pages of the same origin alone; never kept."""
    mail = await a_mail(post, html="<p>Hello</p>")
    async with a_person(post) as person:
        answer = await person.get(f"messages/{mail}/mail")

        policy = {
            name: rest.split()
            for name, _, rest in (
                each.strip().partition(" ")
                for each in answer.headers["content-security-policy"].split(";")
            )
        }
        assert policy == {
            "default-src": ["'none'"],
            "sandbox": [],
            "style-src": ["'unsafe-inline'"],
            "img-src": ["data:"],
            "form-action": ["'none'"],
            "base-uri": ["'none'"],
            "frame-ancestors": ["'self'"],
        }
        expected = {
            "x-frame-options": "SAMEORIGIN",
            "x-content-type-options": "nosniff",
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-dns-prefetch-control": "off",
            "cache-control": "no-store",
            "content-type": "text/html; charset=utf-8",
        }
        assert {name: answer.headers[name] for name in expected} == expected
        assert "<p>Hello</p>" in answer.text

        remote = await person.get(f"messages/{mail}/mail", params={"images": "1"})
        assert "img-src data: https:;" in remote.headers["content-security-policy"]
        assert "script" not in remote.headers["content-security-policy"]
        page = (await person.get(f"messages/{mail}")).text
        assert (
            "unsafe"
            not in (await person.get(f"messages/{mail}")).headers["content-security-policy"]
        )
        assert '<iframe class="mail-frame" sandbox title=' in page


async def test_frame_opened_as_a_page_leads_to_its_page(post: Carteiro) -> None:
    """A mail that looks like a sign-in must not be at an address of the console."""
    mail = await a_mail(post, html="<h1>Sign in</h1>")
    async with a_person(post) as person:
        headers = {"Sec-Fetch-Dest": "document"}
        answer = await person.get(f"messages/{mail}/mail", headers=headers)
        assert answer.url.path == f"/console/messages/{mail}"
        assert "<h1>Sign in</h1>" not in answer.text


async def test_elements_that_no_policy_stops_are_taken_out(post: Carteiro) -> None:
    """In any spelling that a browser reads as one of them."""
    html = " ".join(
        spelled.format(name) + ">"
        for spelled in ("<{}", "<{} x", "<{}/", "<SVG><{}>", "<!--<{}", "x<<{}\n")
        for each in ACTIVE
        for name in (each, each.upper(), each.title())
    )
    mail = await a_mail(post, html=html)
    async with a_person(post) as person:
        shown = (await person.get(f"messages/{mail}/mail")).text.partition("</head>")[2].lower()
    for each in ACTIVE:
        assert f"<{each}" not in shown, each


async def test_pictures_of_the_mail_are_in_its_frame(post: Carteiro) -> None:
    """Those in attachments that are pictures; and many names of one do not make a page without end."""
    picture = {"filename": "a.png", "contentType": "image/png", "content": PICTURE}
    html = "<img src='cid:logo'><img src=\"cid:lo%67o\"><img src=cid:other><img src=cid:page>"
    page = {"filename": "a.html", "contentType": "text/html", "content": PICTURE}
    attachments = [picture | {"contentId": "logo"}, page | {"contentId": "page"}]
    large = picture | {"contentId": "l", "content": base64.b64encode(bytes(300_000)).decode()}
    mail = await a_mail(post, html=html, attachments=attachments)
    many = await a_mail(post, html="<img src=cid:l>" * 20_000, attachments=[large])
    async with a_person(post) as person:
        shown = (await person.get(f"messages/{mail}/mail")).text
        assert shown.count(f"data:image/png;base64,{PICTURE}") == 2
        assert "cid:other" in shown
        assert "cid:page" in shown
        assert len((await person.get(f"messages/{many}/mail")).text) < 6 * 1024 * 1024


async def test_parts_of_a_mail(post: Carteiro) -> None:
    """Each at its own address; texts are escaped and cut."""
    hostile = "</pre><script>alert(1)</script>"
    mail = await a_mail(
        post,
        subject="Olá & <b>",
        html="<a href='https://a.example/?x=1&amp;y'>x</a><a class=b href=\"javascript:alert(1)\">",
        text=hostile + "x" * 100_000,
        headers={"X-Campaign": "<i>" + " long" * 50},
    )
    async with a_person(post) as person:

        async def part(name: str) -> str:
            answer = await person.get(f"messages/{mail}", params={"part": name})
            assert answer.status_code == 200
            assert hostile not in answer.text
            return answer.text.partition('id="mail"')[2]

        assert "<iframe" in await part("html")
        assert "<iframe" in await part("nothing")
        assert "&lt;/pre&gt;&lt;script&gt;" in (text := await part("text"))
        assert len(text) < 80_000
        assert "Cut: the rest" in text
        assert "Content-Type: multipart/alternative" in await part("source")
        headers = await part("headers")
        assert "<dt>X-Campaign</dt><dd>&lt;i&gt; long long" in headers
        assert "<dt>To</dt>" in headers
        links = await part("links")
        assert "https://a.example/?x=1" in links
        assert 'href="javascript' not in links
    text_only = await a_mail(post, html=None, text="only text")
    async with a_person(post) as person:
        page = await person.page(f"messages/{text_only}")
        assert "only text" in page
        assert "<iframe" not in page
        assert (await person.get(f"messages/{text_only}/mail")).status_code == 200


async def test_mail_of_another_tenant_is_not_found(post: Carteiro) -> None:
    """Neither its page nor its frame."""
    mail = await a_mail(post, html="<p>segredo</p>")
    await a_token(post.backend, "of brasa", tenant=BRASA, role=Role.ADMIN)
    await a_token(post.backend, "of acme", tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as other:
        await other.signed_in("ca_of brasa")
        for path in (f"messages/{mail}", f"messages/{mail}/mail"):
            assert "segredo" not in await other.page(path, 404)
        async with Person.at(address) as own:
            await own.signed_in("ca_of acme")
            assert "segredo" in await own.page(f"messages/{mail}/mail")
