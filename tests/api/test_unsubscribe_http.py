"""One-click unsubscribe over HTTP: a link of ours suppresses, nothing else changes anything."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from carteiro.app import Carteiro
from carteiro.errors import ConfigError, StoreUnavailable
from carteiro.model import EventType, MessageId, NoteAnswer, SuppressionReason, UnsubscribeLink
from support.builders import ACME, BRASA
from support.http import ADMIN_TOKEN, a_client, answer_in, error_in, fields_in, opened
from support.library import work
from support.serving import served
from support.unsubscribing import (
    OLD_SECRET,
    SECRET,
    a_mail,
    a_newsletter,
    headers_of,
    offering,
    token_of,
)
from support.working import logged

ANA = "ana@example.com"
FORM = {"List-Unsubscribe": "One-Click"}
NEWS = {"subject": "News", "text": "News", "oneClickUnsubscribe": True}


@pytest.fixture
async def post(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Carteiro]:
    """An app whose ACME has a newsletter."""
    async with opened("memory://", **offering(monkeypatch)) as office:
        await a_newsletter(office)
        yield office


@pytest.fixture
async def client(post: Carteiro) -> AsyncIterator[httpx.AsyncClient]:
    """A client without any key, over a real connection."""
    async with (
        served(post) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as made,
    ):
        yield made


@pytest.fixture
def asked(post: Carteiro, monkeypatch: pytest.MonkeyPatch) -> list[UnsubscribeLink]:
    """The links that the store was asked about."""
    links: list[UnsubscribeLink] = []
    unsubscribe = post.backend.tracking.unsubscribe

    async def counted(link: UnsubscribeLink) -> NoteAnswer:
        links.append(link)
        return await unsubscribe(link)

    monkeypatch.setattr(post.backend.tracking, "unsubscribe", counted)
    return links


async def is_suppressed(post: Carteiro, address: str = ANA) -> bool:
    """True if ACME must not write to this address."""
    return bool(await post.backend.suppressions.find([address], tenant=ACME))


def path_of(token: str) -> str:
    """The path of a link."""
    return f"/unsubscribe/{token}"


# --- the mail -----------------------------------------------------------------------------------


async def test_mail_of_the_template_has_a_link_of_its_own(post: Carteiro) -> None:
    """Both headers of RFC 8058; the address is the configured one."""
    first, second = await a_mail(post), await a_mail(post)
    headers = await headers_of(post, first)

    assert headers.keys() == {"List-Unsubscribe", "List-Unsubscribe-Post"}
    assert headers["List-Unsubscribe"].startswith("<https://mail.example.com/unsubscribe/")
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert await token_of(post, first) != await token_of(post, second)


async def test_mail_of_other_templates_has_none(post: Carteiro) -> None:
    """Nor has one without a template."""
    async with a_client(post) as tenant:
        answer_in(
            await tenant.put("/v1/templates/news", json=NEWS | {"oneClickUnsubscribe": False})
        )
    plain = await post.send(tenant=ACME, to=ANA, subject="s", text="t")

    assert await headers_of(post, await a_mail(post)) == {}
    assert await headers_of(post, plain.id) == {}


async def test_own_header_of_the_sender_is_refused(post: Carteiro) -> None:
    """A mail with two addresses would leave the choice to chance; other headers are kept."""
    template = {"type": "news", "variables": {"n": 1}}
    async with a_client(post) as tenant:
        for headers, field in (
            ({"list-unsubscribe": "<https://a.example>"}, "headers.list-unsubscribe"),
            ({"List-Unsubscribe-Post": "x"}, "headers.List-Unsubscribe-Post"),
            ({f"X-{n}": "x" for n in range(9)}, "headers"),
        ):
            body = {"to": ANA, "template": template, "headers": headers}
            refused = error_in(await tenant.post("/v1/email/send", json=body), 422, "INVALID_VALUE")
            assert fields_in(refused) == [field]
    most = {f"X-{n}": "x" for n in range(8)}
    assert (await headers_of(post, await a_mail(post, headers=most))).items() >= most.items()


async def test_sender_cannot_ask_for_a_link_by_itself(post: Carteiro) -> None:
    """Only the template has the option."""
    body = {"to": ANA, "template": {"type": "news", "variables": {"n": 1}, "oneClick": True}}
    async with a_client(post) as tenant:
        refused = await tenant.post("/v1/email/send", json=body)

    assert fields_in(error_in(refused, 422, "INVALID_VALUE")) == ["template.oneClick"]


async def test_edited_dead_letter_gets_the_link_of_its_new_address(
    post: Carteiro, client: httpx.AsyncClient
) -> None:
    """The old link still unsubscribes the old address."""
    message = await a_mail(post, to="bounce-550@sandbox.test")
    await work(post)
    old = await token_of(post, message)
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        edited = f"/admin/v1/dead-letters/{message}/edit"
        answer_in(await admin.post(edited, json={"to": ANA}))

    await client.post(path_of(await token_of(post, message)), data=FORM)
    is_old_suppressed = await is_suppressed(post, "bounce-550@sandbox.test")
    await client.post(path_of(old), data=FORM)

    assert await is_suppressed(post, ANA)
    assert not is_old_suppressed
    assert await is_suppressed(post, "bounce-550@sandbox.test")


# --- the link -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [{"data": FORM}, {"files": {"List-Unsubscribe": (None, "One-Click")}}]
)
async def test_post_unsubscribes(
    post: Carteiro, client: httpx.AsyncClient, form: dict[str, Any]
) -> None:
    """In either encoding of a form; the next mail fails, and tenant and operator see why."""
    message = await a_mail(post, to="ok@sandbox.test")
    await work(post)
    with logged() as lines:
        answer = await client.post(path_of(await token_of(post, message)), **form)
    refused = await a_mail(post, to="ok@sandbox.test")
    await work(post)

    [*_, event] = await post.backend.reading.events(message)
    [listed] = (await post.backend.suppressions.list(ACME)).rows
    row = await post.backend.reading.message(refused)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert event.type is EventType.UNSUBSCRIBED
    assert (listed.address, listed.reason) == ("ok@sandbox.test", SuppressionReason.UNSUBSCRIBED)
    assert row is not None
    assert row.failure is not None
    assert row.failure.code == "SUPPRESSED"
    assert post.tally.feedback == {("one-click", "UNSUBSCRIBED", "noted"): 1}
    [line] = [line for line in lines if line["event"] == "recipient.unsubscribed"]
    assert (line["outboxId"], line["companyId"]) == (message, ACME)
    assert "ok@sandbox" not in str(lines)


async def test_get_and_head_change_nothing(
    post: Carteiro, client: httpx.AsyncClient, asked: list[UnsubscribeLink]
) -> None:
    """Scanners follow links. The page has a form for people, no script, and does not say whose it is."""
    path = path_of(await token_of(post, await a_mail(post)))

    page, head = await client.get(path), await client.head(path)

    assert (page.status_code, head.status_code, head.content) == (200, 200, b"")
    assert '<form method="post">' in page.text
    assert '<button name="List-Unsubscribe" value="One-Click">' in page.text
    assert 'lang="pt"' in page.text
    for hidden in ("script", "ana@", "acme"):
        assert hidden not in page.text.lower()
    assert asked == []


async def test_answer_is_private(post: Carteiro, client: httpx.AsyncClient) -> None:
    """Not cached, not indexed, not framed, not passed on; no cookie, no redirect."""
    path = path_of(await token_of(post, await a_mail(post)))

    for answer in (await client.get(path), await client.post(path, data=FORM)):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not {"set-cookie", "location"} & answer.headers.keys()


@pytest.mark.parametrize("body", [b"", b"a=b", b"List-Unsubscribe=", b"One-Click"])
async def test_post_without_the_form_changes_nothing(
    post: Carteiro, client: httpx.AsyncClient, asked: list[UnsubscribeLink], body: bytes
) -> None:
    """A scanner that posts blindly does not unsubscribe anybody."""
    answer = await client.post(path_of(await token_of(post, await a_mail(post))), content=body)

    error_in(answer, 400, "MALFORMED_REQUEST")
    assert asked == []


async def test_large_body_is_refused(
    post: Carteiro, client: httpx.AsyncClient, asked: list[UnsubscribeLink]
) -> None:
    path = path_of(await token_of(post, await a_mail(post)))

    error_in(await client.post(path, content=b"x" * 5000), 413, "REQUEST_TOO_LARGE")
    assert asked == []


async def test_repetition_is_answered_alike(post: Carteiro, client: httpx.AsyncClient) -> None:
    """And nobody learns from the answer whether an address is known, or a message was pruned."""
    path = path_of(await token_of(post, await a_mail(post)))
    first = await client.post(path, data=FORM)
    again = await client.post(path, data=FORM)
    await post.backend.tenants.erase(ACME)
    gone = await client.post(path, data=FORM)

    assert {first.status_code, again.status_code, gone.status_code} == {200}
    assert first.content == again.content == gone.content


async def test_link_of_one_tenant_does_nothing_to_another(
    post: Carteiro, client: httpx.AsyncClient
) -> None:
    await a_newsletter(post, tenant=BRASA)
    message = await a_mail(post, tenant=BRASA)

    await client.post(path_of(await token_of(post, message)), data=FORM)

    assert not await is_suppressed(post)
    assert await post.backend.suppressions.find([ANA], tenant=BRASA) == [ANA]


# --- attacks ------------------------------------------------------------------------------------


async def test_forged_links_are_not_found_and_ask_the_store_nothing(
    post: Carteiro, client: httpx.AsyncClient, asked: list[UnsubscribeLink]
) -> None:
    """Cut, changed, of another secret, very long; with any method."""
    right = await token_of(post, await a_mail(post))
    swapped = right[:-1] + ("A" if right[-1] != "A" else "B")
    half = len(right) // 2
    forged = ["x", right[:-1], right[1:], right[:half] + "_" + right[half + 1 :], right + "AAAA"]
    forged += [swapped[::-1], "A" * len(right), "A" * 50_000, "..%2F..%2Fhealth", "%00", "%FF"]

    for each in forged:
        for answer in (
            await client.get(path_of(each)),
            await client.post(path_of(each), data=FORM),
        ):
            error_in(answer, 404, "NOT_FOUND")
    assert asked == []
    assert not await is_suppressed(post)


async def test_flood_of_forged_links_never_reaches_the_store(
    post: Carteiro, asked: list[UnsubscribeLink]
) -> None:
    """Ten thousand, and a real one among them is answered."""
    path = path_of(await token_of(post, await a_mail(post)))
    form = b" HTTP/1.1\r\nHost: a\r\nContent-Length: 26\r\n\r\nList-Unsubscribe=One-Click"
    answers: Counter[bytes] = Counter()

    async with served(post) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for first in range(0, 10_000, 50):
            paths = [path_of(f"{number:090}") for number in range(first, first + 50)]
            if first == 5000:
                paths[25] = path
            writer.write(b"".join([b"POST " + each.encode() + form for each in paths]))
            for _ in paths:
                head = await reader.readuntil(b"\r\n\r\n")
                answers[head[9:12]] += 1
                length = re.search(rb"content-length: (\d+)", head)
                assert length is not None
                await reader.readexactly(int(length[1]))
        writer.close()

    assert answers == {b"404": 9999, b"200": 1}
    assert len(asked) == 1


async def test_flood_of_one_link_is_bounded(
    post: Carteiro, client: httpx.AsyncClient, asked: list[UnsubscribeLink]
) -> None:
    """Of each link a few requests a minute reach the store, in any spelling of it; others are not affected."""
    path = path_of(await token_of(post, await a_mail(post)))
    other = path_of(await token_of(post, await a_mail(post)))
    escaped = path[:-1] + f"%{ord(path[-1]):02X}"

    answers = [await client.post([path, escaped][n % 2], data=FORM) for n in range(100)]

    assert [each.status_code for each in answers] == [200] * 10 + [429] * 90
    assert len(asked) == 10
    assert (await client.post(other, data=FORM)).status_code == 200


async def test_links_of_one_tenant_take_a_share_of_the_store(
    post: Carteiro, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its writes wait for a lock, those of others do not."""
    await a_newsletter(post, tenant=BRASA)
    links = [await token_of(post, await a_mail(post, to=f"{n}@example.com")) for n in range(20)]
    other = await token_of(post, await a_mail(post, tenant=BRASA))
    freed, busy, most = asyncio.Event(), 0, 0

    async def slow(link: UnsubscribeLink) -> NoteAnswer:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        if link.tenant == ACME:
            await freed.wait()
        busy -= 1
        return NoteAnswer.NOTED

    monkeypatch.setattr(post.backend.tracking, "unsubscribe", slow)
    waiting = [asyncio.create_task(client.post(path_of(each), data=FORM)) for each in links]
    while busy < 2:
        await asyncio.sleep(0)
    answer = await client.post(path_of(other), data=FORM)
    freed.set()
    await asyncio.gather(*waiting)

    assert answer.status_code == 200
    assert most == 3


async def test_unreachable_store_asks_for_a_retry(
    post: Carteiro, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never a success that was not stored."""
    path = path_of(await token_of(post, await a_mail(post)))

    async def away(_: UnsubscribeLink) -> NoteAnswer:
        raise StoreUnavailable("the disk is busy")

    with monkeypatch.context() as patched:
        patched.setattr(post.backend.tracking, "unsubscribe", away)
        answer = await client.post(path, data=FORM)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert (await client.post(path, data=FORM)).status_code == 200


# --- the installation ---------------------------------------------------------------------------


async def test_old_mails_still_work_after_the_secret_was_changed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the old one is kept; new mails use the new one."""
    url = f"sqlite:///{tmp_path}/carteiro.db"
    async with opened(url, **offering(monkeypatch, OLD_SECRET)) as before:
        await a_newsletter(before)
        old = await token_of(before, await a_mail(before))
    async with opened(url, **offering(monkeypatch, SECRET, OLD_SECRET)) as after:
        new = await token_of(after, await a_mail(after))
        async with a_client(after, key=None) as client:
            found = await client.get(path_of(old))
    async with (
        opened(url, **offering(monkeypatch, SECRET)) as later,
        a_client(later, key=None) as client,
    ):
        lost, kept = await client.get(path_of(old)), await client.get(path_of(new))

    assert [found.status_code, lost.status_code, kept.status_code] == [200, 404, 200]


async def test_without_a_url_no_template_can_offer_it() -> None:
    """When it is written, and when an e-mail of an older one is submitted; no link is found."""
    async with opened("memory://") as post, a_client(post) as tenant:
        refused = error_in(await tenant.put("/v1/templates/news", json=NEWS), 422, "INVALID_VALUE")
        await a_newsletter(post)
        body = {"to": ANA, "template": {"type": "news", "variables": {"n": 1}}}
        unsent = error_in(await tenant.post("/v1/email/send", json=body), 422, "INVALID_VALUE")
        missing = await tenant.post(path_of("A" * 90), data=FORM)

    assert fields_in(refused) == ["oneClickUnsubscribe"]
    assert "needs unsubscribe.url" in refused["details"][0]["message"]
    assert fields_in(unsent) == ["template.type"]
    error_in(missing, 404, "NOT_FOUND")


async def test_template_shows_the_option(post: Carteiro) -> None:
    """Alone and in lists; a new version is without it unless it asks again."""
    async with a_client(post) as tenant:
        made = answer_in(await tenant.put("/v1/templates/news", json=NEWS))
        [listed] = answer_in(await tenant.get("/v1/templates"))["items"]
        later = answer_in(
            await tenant.put("/v1/templates/news", json={"subject": "a", "text": "b"})
        )

    assert (made["oneClickUnsubscribe"], listed["oneClickUnsubscribe"]) == (True, True)
    assert later["oneClickUnsubscribe"] is False


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"url": "http://mail.example.com", "secrets": "env:A_SECRET"}, "should be https"),
        ({"url": "https://mail.example.com/?a=b", "secrets": "env:A_SECRET"}, "should be https"),
        ({"url": "https://u:p@mail.example.com", "secrets": "env:A_SECRET"}, "should be https"),
        ({"url": "https://a.example/>", "secrets": "env:A_SECRET"}, "should be https"),
        ({"url": f"https://{'a' * 500}.example", "secrets": "env:A_SECRET"}, "at most 500"),
        ({"url": "https://mail.example.com"}, "should be set with unsubscribe.url"),
        ({"url": "https://mail.example.com", "secrets": "whsec_AAAA"}, "never the secret itself"),
        (
            {"url": "https://mail.example.com", "secrets": "env:A_SECRET"},
            "does not lead to secrets",
        ),
        ({"url": "https://mail.example.com", "secrets": "env:NO_SECRET"}, "is not set"),
    ],
)
async def test_invalid_settings_are_reported_at_start(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], fault: str
) -> None:
    """Not when somebody uses a link."""
    monkeypatch.setenv("A_SECRET", "short")
    monkeypatch.delenv("NO_SECRET", raising=False)

    with pytest.raises(ConfigError, match=fault):
        async with opened("memory://", unsubscribe=settings):
            pass


async def test_url_may_have_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a proxy that removes it; its slash at the end does not matter."""
    settings = offering(monkeypatch, url="https://example.com:8443/mail/")
    async with opened("memory://", **settings) as post:
        await a_newsletter(post)
        headers = await headers_of(post, MessageId(await a_mail(post)))

    assert headers["List-Unsubscribe"].startswith("<https://example.com:8443/mail/unsubscribe/")
