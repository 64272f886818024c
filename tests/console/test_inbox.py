"""The inbox of the sandbox, over real connections."""

import base64
import re
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

import orjson
import pytest

from carteiro.app import Carteiro
from carteiro.model import AuditFilter, InboxFilter, MessageId, Role, Via
from support.builders import ACME, BRASA
from support.console import Person, a_console, a_person, a_token
from support.http import an_email
from support.inbox import a_mail

HOSTILE = "<img src=x onerror=\"alert('1')\">"
TRICKY = 'a"\r\nX-Evil: 1/../ação;.html'


async def kept(post: Carteiro, message: MessageId | None = None, **fields: Any) -> MessageId:
    """The message of a mail that the sandbox took, with these fields."""
    tenant = fields.pop("tenant", ACME)
    email = an_email(**fields)
    content = orjson.dumps(email).decode()
    mail = a_mail(message, tenant=tenant, to=email["to"], subject=email["subject"], content=content)
    await post.backend.inbox.keep([mail])
    return mail.message


async def test_mails_are_listed_newest_first_and_filtered(post: Carteiro) -> None:
    """Live without filters; each filter is in the address; pages follow each other."""
    for number in range(55):
        await kept(post, subject=f"Pedido {number}")
    await kept(post, tenant=BRASA, to="eva@example.com", subject="Da Brasa")
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()

    async with a_person(post) as person:
        page = await person.page("inbox")
        assert '<div data-live="inbox">' in page
        assert page.index("Da Brasa") < page.index("Pedido 54") < page.index("Pedido 10")
        assert page.count("<tr data-row>") == 50
        following = re.search(r'rel="next" href="/console/([^"]+)"', page)
        assert following
        rest = await person.page(following[1])
        assert rest.count("<tr data-row>") == 6
        assert "data-live" not in rest

        for number, query in (
            (1, {"to": "EVA@example.com"}),
            (1, {"subject": "pedido 17"}),
            (1, {"tenant": "brasa"}),
            (0, {"since": later}),
            (0, {"tenant": "brasa", "subject": "pedido"}),
        ):
            found = await person.page("inbox", 200, **query)
            assert found.count("<tr data-row>") == number, query
            is_whole = query == {"tenant": "brasa"}
            assert ('data-live="inbox:brasa"' in found) == is_whole
            assert number or "No mail matches" in found


async def test_empty_inbox_says_how_to_fill_it(post: Carteiro) -> None:
    """With the command for a first mail."""
    async with a_person(post) as person:
        page = await person.page("inbox")
        assert "The inbox is empty" in page
        assert "carteiro send --to ok@sandbox.test" in page
        assert await person.page("inbox/unknown", 404)


async def test_new_mail_appears_by_itself(post: Carteiro) -> None:
    """The stream sends the list anew; a tenant's own token sees its mails alone."""
    await a_token(post.backend, "of acme", tenant=ACME)
    await kept(post, tenant=BRASA, subject="Da Brasa")
    seen = ""
    async with (
        a_person(post, "ca_of acme") as person,
        person.stream("GET", "live", params={"topic": "inbox"}) as stream,
    ):
        async for line in stream.aiter_lines():
            seen += line
            if "The inbox is empty" in line:
                await kept(post, subject=HOSTILE)
            if escape(HOSTILE[:5]) in line:
                break
    assert HOSTILE not in seen
    assert "Da Brasa" not in seen


async def test_list_of_a_chosen_tenant_is_live(post: Carteiro) -> None:
    """For those who may see it: the token of another tenant gets nothing of it."""
    await a_token(post.backend, "of acme", tenant=ACME)
    await kept(post, tenant=BRASA, subject="Da Brasa")
    await kept(post, subject="Da Acme")
    for token, is_theirs in (("ca_admin", True), ("ca_of acme", False)):
        seen = ""
        async with (
            a_person(post, token) as person,
            person.stream("GET", "live", params={"topic": "inbox:brasa"}) as stream,
        ):
            async for line in stream.aiter_lines():
                seen += line
                if seen.count("event: inbox:brasa") and not line:
                    break
        assert ("Da Brasa" in seen) == is_theirs
        assert "Da Acme" not in seen


async def test_mail_is_shown_with_all_its_parts(post: Carteiro) -> None:
    """Facts, the frame at both widths, text, source, headers, links and files; hostile texts are only texts."""
    file = {"filename": TRICKY.replace("\r\n", ""), "contentType": "text/html", "content": "PGI+"}
    sender: dict[str, Any] = {"from": "loja@example.com"}
    message = await kept(
        post,
        subject=HOSTILE,
        cc=["bia@example.com"],
        html="<p>Olá</p><a href='https://a.example/x'>x</a>",
        text=f"</pre>{HOSTILE}",
        attachments=[file],
        **sender,
    )
    await kept(post, message, subject=HOSTILE)
    await kept(post, message, subject=HOSTILE, text=HOSTILE, attachments=[file])
    async with a_person(post) as person:
        for part, expected in (
            ("html", "<iframe"),
            ("text", escape(HOSTILE[:5])),
            ("source", "Content-Type: multipart"),
            ("headers", "<dt>To</dt>"),
            ("links", "no links"),
        ):
            answer = await person.get(f"inbox/{message}", params={"part": part})
            assert answer.status_code == 200
            assert expected in answer.text, part
            assert HOSTILE not in answer.text
            assert "delivered 3 times" in answer.text
            assert f'href="/console/inbox/{message}/files/1"' in answer.text
            assert f'href="/console/messages/{message}"' in answer.text
        narrow = await person.page(f"inbox/{message}", width="phone")
        assert 'class="mail-frame narrow"' in narrow
        frame = await person.get(f"inbox/{message}/mail")
        assert "sandbox" in frame.headers["content-security-policy"]
        assert "<p>Olá</p>" in frame.text
        headers = {"Sec-Fetch-Dest": "document"}
        opened = await person.get(f"inbox/{message}/mail", headers=headers)
        assert opened.url.path == f"/console/inbox/{message}"


@pytest.mark.parametrize("name", ["a.html", 'a"; x=".svg', "../../ação ✉.pdf", "%0d%0aX-Evil: 1"])
async def test_attachment_is_a_download_that_nothing_runs(post: Carteiro, name: str) -> None:
    """Never in the type that the sender named; the name cannot add a header; an unknown number is not found."""
    content = b"<script>alert(1)</script>\x00\xff"
    file = {"filename": name, "contentType": "text/html"}
    coded = base64.b64encode(content).decode()
    message = await kept(post, attachments=[file | {"content": coded}])
    async with a_person(post) as person:
        answer = await person.get(f"inbox/{message}/files/1")
        assert answer.status_code == 200
        assert answer.content == content
        assert answer.headers["content-type"] == "application/octet-stream"
        disposition = answer.headers["content-disposition"]
        assert re.fullmatch(r"attachment; filename\*=UTF-8''[\w.%~-]+", disposition, re.ASCII)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        assert policy == "default-src 'none'; sandbox; frame-ancestors 'none'"
        assert "x-evil" not in answer.headers
        for number in ("0", "2", "-1", "x", "²", "1" * 5000):
            assert (await person.get(f"inbox/{message}/files/{number}")).status_code == 404


async def test_content_that_was_never_an_email_is_not_shown(post: Carteiro) -> None:
    """The page says so; its frame is empty, and it has no files."""
    mail = a_mail(content="{}")
    await post.backend.inbox.keep([mail])
    async with a_person(post) as person:
        assert "not an e-mail" in await person.page(f"inbox/{mail.message}")
        assert (await person.get(f"inbox/{mail.message}/mail")).status_code == 200
        assert (await person.get(f"inbox/{mail.message}/files/1")).status_code == 404


async def test_mail_of_another_tenant_is_not_found(post: Carteiro) -> None:
    """Neither its page, its frame nor its files; and it cannot be deleted."""
    file = {"filename": "a.txt", "contentType": "text/plain", "content": "YQ=="}
    message = await kept(post, subject="segredo", html="<p>segredo</p>", attachments=[file])
    await a_token(post.backend, "of brasa", tenant=BRASA, role=Role.ADMIN)
    async with a_person(post, "ca_of brasa") as other:
        for path in ("", "/mail", "/files/1"):
            assert "segredo" not in await other.page(f"inbox/{message}{path}", 404)
        assert "segredo" not in await other.page("inbox")
        assert "no such tenant" in await other.page("inbox", 404, tenant="acme")
        answer = await other.sent(f"inbox/{message}/delete", {"confirmed": "yes"})
        assert answer.status_code == 404
        emptied = await other.sent("inbox/empty", {"confirmed": "yes", "tenant": "acme"})
        assert emptied.status_code == 404
    assert len((await post.backend.inbox.find(InboxFilter())).rows) == 1


async def test_mails_are_deleted_by_those_who_may(post: Carteiro) -> None:
    """After a question; recorded with the name of the token; a viewer has no button, and is refused."""
    first, second = await kept(post), await kept(post)
    await kept(post, tenant=BRASA)
    await a_token(post.backend, "viewer", role=Role.VIEWER)
    await a_token(post.backend, "ops", role=Role.OPERATOR, tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as viewer:
        await viewer.signed_in("ca_viewer")
        assert "/delete" not in await viewer.page(f"inbox/{first}")
        assert "/empty" not in await viewer.page("inbox", tenant="acme")
        for path in (f"inbox/{first}/delete", "inbox/empty"):
            refused = await viewer.sent(path, {"confirmed": "yes", "tenant": "acme"})
            assert refused.status_code == 403

        async with Person.at(address) as operator:
            await operator.signed_in("ca_ops")
            assert f"inbox/{first}/delete" in await operator.page(f"inbox/{first}")
            asked = await operator.sent(f"inbox/{first}/delete")
            assert "Delete this mail" in asked.text
            assert len((await post.backend.inbox.find(InboxFilter(tenant=ACME))).rows) == 2
            answer = await operator.sent(f"inbox/{first}/delete", {"confirmed": "yes"})
            assert "The mail was deleted." in answer.text
            again = await operator.sent(f"inbox/{first}/delete", {"confirmed": "yes"})
            assert again.status_code == 404
            assert await operator.page(f"inbox/{second}")
            assert "/console/inbox/empty" in await operator.page("inbox")
            answer = await operator.sent("inbox/empty", {"confirmed": "yes"})
            assert "The mails were deleted." in answer.text
    assert [each.tenant for each in (await post.backend.inbox.find(InboxFilter())).rows] == [BRASA]
    [row] = (await post.backend.audit.list(AuditFilter(kind="inbox"))).rows
    assert (row.who, row.via, row.tenant) == ("ops", Via.CONSOLE, ACME)


async def test_all_mails_are_deleted_only_of_a_named_tenant(post: Carteiro) -> None:
    """An administrator of all tenants filters by one first."""
    await kept(post)
    async with a_person(post) as person:
        assert "/console/inbox/empty" not in await person.page("inbox")
        answer = await person.sent("inbox/empty", {"confirmed": "yes"})
        assert answer.status_code in {400, 422}
        assert "/console/inbox/empty" in await person.page("inbox", tenant="acme")
        await person.sent("inbox/empty", {"confirmed": "yes", "tenant": "acme"})
    assert (await post.backend.inbox.find(InboxFilter())).rows == []
