"""Pages of messages, over real connections: search, one message, redrive, edit, cancel, and all matches at once."""

import re
from datetime import timedelta
from html import escape, unescape
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.console.editing import changes_in, editable
from carteiro.console.listing import PAGE_ROWS
from carteiro.model import AuditFilter, MessageFilter, MessageId, Page, Role, State, StoredMessage
from carteiro.policy.trace_context import TRACE
from support import builders
from support.builders import ACME, BRASA, TASK, a_task, dead
from support.console import Person, a_console, a_person, a_token
from support.http import KEY_OF_BRASA, a_client, an_email, answer_in
from support.library import work
from support.steps import accepted, claimed, settled

LATER = "2199-01-01T00:00:00Z"
HOSTILE = "<script>alert('x')</script>\"'>"


async def a_message(post: Carteiro, *, key: str | None = None, **fields: Any) -> MessageId:
    """The id of a new message of ACME's, or of the owner of a key."""
    options = {} if key is None else {"key": key}
    async with a_client(post, **options) as client:
        answer = await client.post("/v1/email/send", json=an_email(**fields))
    return MessageId(str(answer_in(answer, 202)["outboxId"]))


async def a_dead_one(post: Carteiro, **fields: Any) -> MessageId:
    """The id of a new dead letter of ACME's."""
    message = await a_message(post, to="bounce-550@sandbox.test", **fields)
    await work(post)
    return message


async def message_of(post: Carteiro, identity: MessageId) -> StoredMessage:
    """The message as it is now."""
    found = await post.backend.reading.message(identity)
    assert found is not None
    return found


def rows_in(page: str) -> list[str]:
    """The ids of messages in a list, in its order."""
    return re.findall(r'<a href="/console/messages/([0-9a-f-]{36})"', page)


async def audited(post: Carteiro, action: str) -> list[tuple[str, str, str]]:
    """The audit rows of an action: way, who, object."""
    rows = (await post.backend.audit.list(AuditFilter(action=action))).rows
    return [(str(each.via), each.who, each.object) for each in rows]


# --- the search ---------------------------------------------------------------------------------


async def test_search_finds_by_every_field(post: Carteiro) -> None:
    """In the line, by single fields, and by what is pasted: each leads to an address that finds the same."""
    dead = await a_dead_one(post, tags=["invoice"], subject="Fatura")
    waiting = await a_message(post, externalId="order-1", scheduledAt=LATER)
    other = await a_message(post, key=KEY_OF_BRASA, scheduledAt=LATER)
    async with a_person(post) as person:

        async def found(query: str) -> list[str]:
            return rows_in(await person.page("messages", q=query))

        assert await found("") == [other, waiting, dead]
        assert await found("status:failed") == [dead]
        assert await found("tag:invoice code:550 tenant:acme after:24h") == [dead]
        assert await found("bounce-550@sandbox.test") == [dead]
        assert await found("external-id:order-1") == [waiting]
        assert await found(f"tenant:{BRASA}") == [other]
        assert await found("code:551") == []
        by_id = await person.get("messages", params={"q": dead})
        assert by_id.url.path == f"/console/messages/{dead}"

        fields = await person.get(
            "messages", params={"q": "tag:x status:sent", "status": "failed", "tag": "", "to": ""}
        )
        assert fields.url.params["q"] in {"tag:x status:failed", "status:failed tag:x"}
        chips = await person.page("messages", q="status:failed tag:invoice")
        assert 'class="chip" href="/console/messages?q=tag%3Ainvoice"' in chips
        assert 'href="/console/messages?q=status%3Afailed+tag%3Ainvoice+tenant%3Aacme"' in chips


async def test_search_that_cannot_be_read_finds_nothing_and_says_what_to_do(post: Carteiro) -> None:
    """And is shown as it was written, escaped."""
    await a_message(post, scheduledAt=LATER)
    async with a_person(post) as person:
        page = await person.page("messages", q="statsu:failed invoice")
        assert "There is no field statsu" in page
        assert "Did you mean status?" in page
        assert "such as tag:invoice" in page
        assert rows_in(page) == []
        portuguese = await person.get(
            "messages", params={"q": "status:failde"}, headers={"Accept-Language": "pt"}
        )
        assert "Você quis dizer failed?" in portuguese.text
        for query in (HOSTILE, f"tag:{HOSTILE}", f'tag:"{HOSTILE}', "{0.__class__}", "x" * 5000):
            for path in ("messages", "messages/complete"):
                text = (await person.get(path, params={"q": query})).text
                assert "<script>alert" not in text
        assert rows_in(await person.page("messages", q="tag:\x00")) == []


async def test_search_is_completed_with_what_the_viewer_may_see(post: Carteiro) -> None:
    """Fields, states, tenants, codes of failures, and tags of new messages."""
    await a_dead_one(post, tags=["invoice", "big invoice"])
    await a_message(post, key=KEY_OF_BRASA, tags=["segredo"], scheduledAt=LATER)
    await a_token(post.backend, "of acme", tenant=ACME)
    async with (
        a_console(post) as (address, _),
        Person.at(address) as own,
        Person.at(address) as all_,
    ):
        await all_.signed_in()
        await own.signed_in("ca_of acme")

        async def proposed(person: Person, query: str) -> list[str]:
            answer = await person.get("messages/complete", params={"q": query})
            page = answer.text.partition("<datalist")[2].partition("</datalist>")[0]
            return [unescape(each) for each in re.findall(r'<option value="([^"]*)"', page)]

        assert await proposed(all_, "tag:x st") == ["tag:x status:"]
        assert await proposed(all_, "status:f") == ["status:failed"]
        assert await proposed(all_, "kind:") == ["kind:email:send"]
        assert await proposed(all_, "to:") == []
        assert {f"tenant:{ACME}", f"tenant:{BRASA}"} <= set(await proposed(all_, "tenant:"))
        assert await proposed(all_, "tag:s") == ["tag:segredo"]
        assert await proposed(own, "tenant:") == [f"tenant:{ACME}"]
        assert await proposed(own, "tag:") == ['tag:"big invoice"', "tag:invoice"]


async def test_search_stops_after_20000_messages_and_says_where(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next page goes on there."""
    asked: list[Any] = []
    message = await message_of(post, await a_message(post, scheduledAt=LATER))

    async def messages(
        wanted: MessageFilter, *, cursor: Any = None, limit: int = 100
    ) -> Page[StoredMessage]:
        if wanted.code is not None:  # the start page asks, too
            asked.append((wanted.code, cursor, limit))
        return Page([], f"W10{len(asked)}", message.created_at)  # type: ignore[arg-type]

    monkeypatch.setattr(post.backend.reading, "messages", messages)
    async with a_person(post) as person:
        page = await person.page("messages", q="code:550")
    assert len(asked) == 6
    assert asked[0] == ("550", None, PAGE_ROWS)
    assert "has looked back to" in page
    assert "cursor=W106" in page


async def test_token_of_a_tenant_finds_its_own_alone(post: Carteiro) -> None:
    """Neither by filter nor by id."""
    mine = await a_message(post, scheduledAt=LATER)
    other = await a_message(post, key=KEY_OF_BRASA, scheduledAt=LATER)
    await a_token(post.backend, "of acme", tenant=ACME)
    async with a_person(post, "ca_of acme") as person:
        assert rows_in(await person.page("messages")) == [mine]
        assert other not in await person.page("messages", 404, q=f"tenant:{BRASA}")
        assert (await person.get("messages", params={"q": other})).status_code == 404


# --- one message --------------------------------------------------------------------------------


async def test_message_is_shown_with_its_life_and_its_verdict(post: Carteiro) -> None:
    """The drawing, its table, the rule, what it waits for, and what the viewer may do."""
    dead = await a_dead_one(post, subject=HOSTILE, tags=["a & b"])
    waiting = await a_message(post, scheduledAt=LATER)
    await a_token(post.backend, "viewer")
    async with (
        a_console(post) as (address, _),
        Person.at(address) as admin,
        Person.at(address) as viewer,
    ):
        await admin.signed_in()
        await viewer.signed_in("ca_viewer")
        text = (await admin.get(f"messages/{dead}")).text
        assert "<script>alert" not in text
        assert escape(HOSTILE).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in text
        assert '<svg class="timeline"' in text
        assert "smtp.text." in text
        assert "this text means the same at every provider" in text
        assert "It is a dead letter (permanent error)" in text
        for each in ("redrive", "edit"):
            assert f'/console/messages/{dead}/{each}"' in text
            assert f"{dead}/{each}" not in (await viewer.get(f"messages/{dead}")).text
        assert f'data-copy="{dead}"' in text

        page = (await admin.get(f"messages/{waiting}")).text
        assert "It is scheduled" in page
        assert 'data-until="2199-01-01T00:00:00+00:00"' in page
        assert f'action="/console/messages/{waiting}/cancel"' in page
        assert "message" in await admin.page("messages/nothing", 404)


async def test_message_is_cancelled_after_a_question(post: Carteiro) -> None:
    """As the API does it, with the same audit row; a second time is refused."""
    message = await a_message(post, scheduledAt=LATER)
    async with a_person(post) as person:
        asked = await person.sent(f"messages/{message}/cancel")
        assert "Cancel this message?" in asked.text
        assert (await message_of(post, message)).state is State.ENQUEUED

        done = await person.sent(f"messages/{message}/cancel", {"confirmed": "yes"})
        assert "The message is cancelled." in done.text
        assert (await message_of(post, message)).state is State.CANCELLED
        assert await audited(post, "cancel") == [("console", "admin", message)]

        again = await person.sent(f"messages/{message}/cancel", {"confirmed": "yes"})
        assert again.status_code == 409
        assert "nothing to cancel" in again.text


async def test_dead_letter_is_redriven_after_a_question(post: Carteiro) -> None:
    """Once."""
    dead = await a_dead_one(post)
    async with a_person(post) as person:
        assert "Send this message again?" in (await person.sent(f"messages/{dead}/redrive")).text
        done = await person.sent(f"messages/{dead}/redrive", {"confirmed": "yes"})
        assert "The message is redriven" in done.text
        assert (await message_of(post, dead)).round == 2
        assert await audited(post, "redrive") == [("console", "admin", dead)]
        again = await person.sent(f"messages/{dead}/redrive", {"confirmed": "yes"})
        assert again.status_code in {404, 409}


async def test_edit_shows_the_difference_and_sends_a_revision(post: Carteiro) -> None:
    """Nothing is sent before it was seen; what is not allowed keeps the form; an edit of somebody else is not lost."""
    dead = await a_dead_one(post, text="one\ntwo\nthree", subject="Old")
    async with a_person(post) as person:
        form = (await person.get(f"messages/{dead}/edit")).text
        assert 'name="to" value="bounce-550@sandbox.test"' in form
        fields = {
            "revision": "1",
            "to": "ana@example.com",
            "subject": "New",
            "text": "one\r\nTWO\r\nthree",
            "html": "<p>Olá</p>",
        }
        wrong = await person.sent(f"messages/{dead}/edit", fields | {"to": "nobody"})
        assert wrong.status_code == 422
        assert 'name="to" value="nobody"' in wrong.text
        nothing = await person.sent(f"messages/{dead}/edit", {"revision": "1"})
        assert nothing.status_code == 422

        seen = await person.sent(f"messages/{dead}/edit", fields)
        assert "<del>- two</del>" in seen.text
        assert "<ins>+ TWO</ins>" in seen.text
        assert "<h2>HTML</h2>" not in seen.text
        assert (await message_of(post, dead)).revision == 1

        done = await person.sent(f"messages/{dead}/edit", fields | {"confirmed": "yes"})
        assert "redriven as a new revision" in done.text
        sent = await message_of(post, dead)
        assert (sent.revision, sent.subject, sent.to) == (2, "New", "ana@example.com")
        assert await audited(post, "edit") == [("console", "admin", dead)]
        late = await person.sent(f"messages/{dead}/edit", fields | {"confirmed": "yes"})
        assert late.status_code in {404, 409}


# --- all matches at once ------------------------------------------------------------------------


async def test_all_matches_are_counted_shown_and_redriven(post: Carteiro) -> None:
    """Only the dead ones among them, and none that came after the preview."""
    dead = [await a_dead_one(post, tags=["invoice"], subject=f"n {at}") for at in range(12)]
    other = await a_dead_one(post, tags=["other"])
    async with a_person(post) as person:
        preview = await person.page("messages/bulk", do="redrive", q="tag:invoice")
        assert "12 messages would be redriven." in preview
        assert len(rows_in(preview)) == 10
        until = re.search(r'name="until" value="([^"]+)"', preview)
        assert until
        late = await a_dead_one(post, tags=["invoice"])
        waiting = await a_message(post, tags=["invoice"], scheduledAt=LATER)

        form = {"q": "tag:invoice", "until": until[1]}
        asked = await person.sent("messages/bulk/redrive", form)
        assert "Send all of these messages again?" in asked.text
        done = await person.sent("messages/bulk/redrive", form | {"confirmed": "yes"})
        assert "Messages redriven: 12." in done.text
        assert done.url.params["q"] == "tag:invoice"

    assert {(await message_of(post, each)).round for each in dead} == {2}
    assert {(await message_of(post, each)).round for each in (other, waiting, late)} == {1}
    assert {(via, who) for via, who, _ in await audited(post, "redrive")} == {("console", "admin")}


async def test_all_matches_are_cancelled(post: Carteiro) -> None:
    """Of all tenants, those that are not finished; each has its audit row. A tenant's token cancels its own alone."""
    dead = await a_dead_one(post)
    mine = [await a_message(post, scheduledAt=LATER) for _ in range(3)]
    other = await a_message(post, key=KEY_OF_BRASA, scheduledAt=LATER)
    await a_token(post.backend, "of acme", tenant=ACME, role=Role.OPERATOR)
    async with (
        a_console(post) as (address, _),
        Person.at(address) as own,
        Person.at(address) as all_,
    ):
        await own.signed_in("ca_of acme")
        await all_.signed_in()
        for person, number in ((own, 3), (all_, 1)):
            preview = await person.page("messages/bulk", do="cancel", q="")
            assert f"{number} message" in preview
            until = re.search(r'name="until" value="([^"]+)"', preview)
            assert until
            form = {"q": "", "until": until[1], "confirmed": "yes"}
            done = await person.sent("messages/bulk/cancel", form)
            assert f"not sent again: {number}." in done.text
    for each in (*mine, other):
        assert (await message_of(post, each)).state is State.CANCELLED
    assert (await message_of(post, dead)).state is State.FAILED
    assert {each for _, _, each in await audited(post, "cancel")} == {*mine, other}


async def test_all_matches_of_nothing_readable_are_refused(post: Carteiro) -> None:
    """A search with a fault must never mean all messages."""
    message = await a_message(post, scheduledAt=LATER)
    async with a_person(post) as person:
        for query in ("statsu:failed", "invoice", message):
            assert "correct it in the list" in await person.page(
                "messages/bulk", 422, do="cancel", q=query
            )
            form = {"q": query, "until": LATER, "confirmed": "yes"}
            assert (await person.sent("messages/bulk/cancel", form)).status_code == 422
        form = {"q": "", "confirmed": "yes"}
        assert (await person.sent("messages/bulk/cancel", form)).status_code == 422
        assert "redrive or cancel" in await person.page("messages/bulk", 422, do="drop")
    assert (await message_of(post, message)).state is State.ENQUEUED


async def test_more_than_10000_matches_are_not_counted_on(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is exact up to there; and so is the work, which stops after 20,000 rows."""
    message = await message_of(post, await a_dead_one(post))
    pages = 0

    async def messages(
        wanted: MessageFilter, *, cursor: Any = None, limit: int = 100
    ) -> Page[StoredMessage]:
        nonlocal pages
        pages += 1
        return Page([message] * limit, "W10")  # type: ignore[arg-type]

    monkeypatch.setattr(post.backend.reading, "messages", messages)
    async with a_person(post) as person:
        preview = await person.page("messages/bulk", do="redrive", q="status:failed")
        assert "More than 10,000 messages would be redriven." in preview
        assert pages == 51
        pages = 0
        preview = await person.page("messages/bulk", do="cancel", q="status:failed")
        assert "0 messages would be cancelled." in preview
        assert "has looked back to" in preview
        assert pages == 100


async def test_task_shows_its_arguments_and_is_edited_as_json(post: Carteiro) -> None:
    """It has no mail, even if its arguments look like one; a wrong form says so."""
    content = '{"to": "ana@example.com", "subject": "<b>", "text": "x"}'
    [task] = await accepted(post.backend.store, a_task(content=content))
    [job] = await claimed(post.backend.store, kinds=[TASK])
    await settled(post.backend.store, job, dead())
    async with a_person(post) as person:
        page = (await person.get(f"messages/{task}")).text
        assert "<iframe" not in page
        assert "ana@example.com&#34;" in page
        assert "<iframe" not in (await person.get(f"messages/{task}/mail")).text
        form = {"revision": "1"}
        for wrong in ("[]", "{", '{"new": 1}'):
            answer = await person.sent(f"messages/{task}/edit", form | {"arguments": wrong})
            assert answer.status_code == 422, wrong
        given = form | {"arguments": '{"subject": "new"}', "confirmed": "yes"}
        await person.sent(f"messages/{task}/edit", given)
    changed = await message_of(post, task)
    assert changed.revision == 2
    assert changed.content == '{"to":"ana@example.com","subject":"new","text":"x"}'


def test_arguments_of_a_task_are_shown_within_their_size() -> None:
    """Deep nests are not indented, and what a task carries besides is not edited."""
    deep = f"{'[' * 200}{'1,' * 20_000}1{']' * 200}"
    content = f'{{"deep":{deep},"{TRACE}":{{}}}}'
    message = builders.a_stored_message(kind=TASK, content=content)
    [field] = editable(message)
    assert len(field.text) <= len(content)
    assert TRACE not in field.text
    assert changes_in(message, {"arguments": '{"deep":[]}'}) == {"deep": []}


async def test_message_without_content_cannot_be_edited_or_shown(post: Carteiro) -> None:
    """The page says why, and offers nothing that would be refused."""
    [task] = await accepted(post.backend.store, builders.a_message())
    [job] = await claimed(post.backend.store)
    await settled(post.backend.store, job, dead())
    await post.backend.dead_letters.drop([task])
    await post.backend.upkeep.prune(bodies=timedelta(seconds=-5), histories=None)
    async with a_person(post) as person:
        page = await person.page(f"messages/{task}")
        assert "The content was pruned" in page
        assert f"/console/messages/{task}/redrive" not in page
        assert (await person.get(f"messages/{task}/mail")).status_code == 200
        await person.page(f"messages/{task}/edit", 404)
