"""Dead letters over HTTP: list, show, redrive, export, import and purge."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from carteiro.api.admin.dead_letter_documents import (
    DeadLetterDetail,
    DeadLetterPage,
    Groups,
    RedriveResults,
)
from carteiro.app import Carteiro
from carteiro.dead_letters.redrive import revise
from carteiro.model import MessageId, RedriveAnswer, Revision, State
from support.builders import ACME, BRASA
from support.burying import contents_read
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_BRASA,
    a_client,
    an_email,
    answer_in,
    error_in,
    fields_in,
    sent,
)
from support.library import row_of, work
from support.recovering import PROVIDER, lost
from support.serving import served

PATH = "/admin/v1/dead-letters"
BOUNCES = "bounce-550@sandbox.test"


async def died(post: Carteiro, number: int = 1, *, key: str = "ck_acme", to: str = BOUNCES) -> Any:
    """The ids of this many e-mails that could not be delivered, oldest first."""
    async with a_client(post, key=key) as client:
        ids = [(await sent(client, to=to))["outboxId"] for _ in range(number)]
    await work(post)
    return ids


async def found(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """Ids of the dead letters that match."""
    document = answer_in(await client.get(PATH, params=query))
    DeadLetterPage.model_validate(document)
    return [each["outboxId"] for each in document["items"]]


# --- looking ------------------------------------------------------------------------------------


async def test_every_filter_counts(post: Carteiro) -> None:
    """Each finds the matching one, and not the other."""
    [of_acme] = await died(post)
    [of_brasa] = await died(post, key=KEY_OF_BRASA, to="reject@sandbox.test")

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        assert sorted(await found(admin)) == sorted([of_acme, of_brasa])
        for query in ({"companyId": ACME}, {"code": "550"}, {"text": "bounce-550"}):
            assert await found(admin, **query) == [of_acme], query
        assert await found(admin, reason="expired") == []
        assert await found(admin, category="TRANSIENT_ERROR") == []
        assert await found(admin, isRedriven="true") == []
        assert await found(admin, movedBefore="2000-01-01T00:00:00Z") == []
        groups = answer_in(await admin.get(f"{PATH}/groups", params={"by": "tenant"}))

    Groups.model_validate(groups)
    assert {each["key"]: each["count"] for each in groups["items"]} == {ACME: 1, BRASA: 1}


async def test_dead_letter_is_shown_with_content_and_history(post: Carteiro) -> None:
    """A list does not show the content."""
    [dead] = await died(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        shown = answer_in(await admin.get(f"{PATH}/{dead}"))
        listed = await admin.get(PATH)

    DeadLetterDetail.model_validate(shown)
    assert (shown["reason"], shown["lastFailureCode"]) == ("permanent_error", "550")
    assert shown["originalData"]["to"] == BOUNCES
    assert [each["type"] for each in shown["events"]][-1] == "FAILED"
    assert "Olá" not in listed.text


async def test_dead_letter_says_what_it_waits_for(post: Carteiro) -> None:
    """The provider, the round and its time; or why nothing redrives it. So does the explanation of its message."""
    [other] = await died(post)
    new = {"subject": "Code", "text": "1", "automaticRedrive": False}

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        waiting = await lost(post.backend, template_type="code")
        shown = answer_in(await admin.get(f"{PATH}/{waiting}"))["automaticRedrive"]
        told = answer_in(await admin.get(f"/admin/v1/messages/{waiting}/explain"))[
            "automaticRedrive"
        ]
        put = answer_in(await admin.put(f"/admin/v1/tenants/{ACME}/templates/code", json=new))
        off = answer_in(await admin.get(f"{PATH}/{waiting}"))["automaticRedrive"]
        never = answer_in(await admin.get(f"{PATH}/{other}"))["automaticRedrive"]

    assert told == shown
    assert (shown["provider"], shown["round"], shown["rounds"]) == (PROVIDER, 1, 3)
    assert shown["notBefore"] is not None
    assert put["automaticRedrive"] is False
    assert off["text"] == "Automatic redrive is switched off for its template type."
    assert (never["provider"], never["notBefore"], never["round"]) == (None, None, None)


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/redrive"), ("POST", "/edit")])
async def test_unknown_dead_letter_is_not_found(post: Carteiro, method: str, path: str) -> None:
    """The same holds for a message that is not dead."""
    async with a_client(post) as client:
        waits = (await sent(client))["outboxId"]

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        for unknown in ("x", "01900000-0000-7000-8000-000000000001", waits):
            body = an_email() if path == "/edit" else None
            response = await admin.request(method, f"{PATH}/{unknown}{path}", json=body)
            error_in(response, 404, "NOT_FOUND")


async def test_refused_redrive_names_the_state_of_the_message(post: Carteiro) -> None:
    """The caller learns that the id is right, and why there is nothing to redrive."""
    async with a_client(post) as client:
        waits = (await sent(client))["outboxId"]

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        response = await admin.post(f"{PATH}/{waits}/redrive")

    error = error_in(response, 404, "NOT_FOUND")
    assert error["message"] == "The message is not a dead letter: it is ENQUEUED"


# --- redriving ----------------------------------------------------------------------------------


async def test_dead_letter_is_redriven_once(post: Carteiro) -> None:
    """While it is in flight a second redrive is refused."""
    [dead] = await died(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        first = answer_in(await admin.post(f"{PATH}/{dead}/redrive"))
        again = await admin.post(f"{PATH}/{dead}/redrive")

    assert first == {"outboxId": dead, "answer": "redriven"}
    error_in(again, 409, "CONFLICT")
    assert (await row_of(post, MessageId(dead))).state is State.ENQUEUED


async def test_edited_dead_letter_has_new_content(post: Carteiro) -> None:
    """Fields that are not named stay; it is sent as a new revision."""
    [dead] = await died(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        changes = {"to": "ok@sandbox.test", "subject": "Mended"}
        answer_in(await admin.post(f"{PATH}/{dead}/edit", json=changes))
        await work(post)

    after = await row_of(post, MessageId(dead))
    assert (after.state, after.revision, after.subject) == (State.SENT, 2, "Mended")
    [mail] = await post.backend.inbox.list()
    assert mail.to == "ok@sandbox.test"
    assert "Olá" in mail.content


async def test_edit_of_an_outdated_revision_is_409(post: Carteiro) -> None:
    """The other edit stays."""
    [dead] = await died(post)
    letters = _EditedMeanwhile(post)
    office = Carteiro(
        replace(post.backend, dead_letters=letters), post.settings, threads=post._threads
    )

    async with a_client(office, key=ADMIN_TOKEN) as admin:
        response = await admin.post(f"{PATH}/{dead}/edit", json={"subject": "Mine"})

    error_in(response, 409, "CONFLICT")
    after = await row_of(post, MessageId(dead))
    assert (after.state, after.revision, after.subject) == (State.FAILED, 2, "Theirs")


class _EditedMeanwhile:
    """Dead letters that are edited elsewhere, and die again, just before they are redriven."""

    def __init__(self, post: Carteiro) -> None:
        self._post = post
        self._letters = post.backend.dead_letters

    def __getattr__(self, name: str) -> Any:
        return getattr(self._letters, name)

    async def redrive(
        self, ids: Sequence[MessageId], *, by: str, revision: Revision | None = None
    ) -> list[RedriveAnswer]:
        """Apply the other edit first."""
        row = await row_of(self._post, ids[0])
        theirs = await revise(row, {"subject": "Theirs"}, backend=self._post.backend)
        await self._letters.redrive(ids, by="rui", revision=theirs)
        await work(self._post)
        return await self._letters.redrive(ids, by=by, revision=revision)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"to": "nobody"}, 422),
        ({"subject": "a\nb"}, 422),
        ({"priority": 1}, 422),
        ({"colour": "blue"}, 422),
        ({"html": None}, 400),
        ({}, 400),
        ([], 400),
    ],
)
async def test_invalid_edit_changes_nothing(post: Carteiro, changes: object, status: int) -> None:
    """It is validated like a new e-mail."""
    [dead] = await died(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        response = await admin.post(f"{PATH}/{dead}/edit", json=changes)

    error_in(response, status, "MALFORMED_REQUEST" if status == 400 else "INVALID_VALUE")
    after = await row_of(post, MessageId(dead))
    assert (after.state, after.revision) == (State.FAILED, 1)


async def test_many_are_redriven_by_id(post: Carteiro) -> None:
    """A result for each, also for an unknown one."""
    ids = await died(post, 2)
    unknown = "01900000-0000-7000-8000-000000000001"

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        document = answer_in(
            await admin.post(f"{PATH}/redrive", json={"ids": [ids[0], unknown, ids[1]]})
        )

    RedriveResults.model_validate(document)
    assert [each["answer"] for each in document["results"]] == ["redriven", "not_found", "redriven"]
    assert document["hasMore"] is False


async def test_all_that_match_are_redriven_page_by_page(post: Carteiro) -> None:
    """Each is redriven once, and others are not changed."""
    ids = await died(post, 3)
    [other] = await died(post, key=KEY_OF_BRASA)
    asked = {"matching": {"companyId": ACME}, "limit": 2}
    redriven: list[str] = []

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        more = True
        while more:
            document = answer_in(await admin.post(f"{PATH}/redrive", json=asked))
            redriven += [each["outboxId"] for each in document["results"]]
            more = document["hasMore"]

    assert sorted(redriven) == sorted(ids)
    assert (await row_of(post, MessageId(other))).state is State.FAILED


@pytest.mark.parametrize("asked", [{}, {"ids": [], "matching": {}}, {"matching": {"age": 1}}])
async def test_redrive_without_a_selection_is_refused(
    post: Carteiro, asked: dict[str, Any]
) -> None:
    [dead] = await died(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        error_in(await admin.post(f"{PATH}/redrive", json=asked), 422, "INVALID_VALUE")

    assert (await row_of(post, MessageId(dead))).state is State.FAILED


# --- exporting and purging ----------------------------------------------------------------------


async def imported(client: httpx.AsyncClient, lines: bytes) -> httpx.Response:
    """The answer to an import."""
    headers = {"Content-Type": "application/x-ndjson"}
    return await client.post(f"{PATH}/import", content=lines, headers=headers)


async def test_purged_export_can_be_imported(post: Carteiro) -> None:
    """Line by line, and once."""
    ids = await died(post, 2)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        exported = await admin.get(f"{PATH}/export")
        purged = answer_in(await admin.post(f"{PATH}/purge", json={"olderThanMs": 0}))
        none = await found(admin)
        restored = answer_in(await imported(admin, exported.content))
        again = answer_in(await imported(admin, exported.content))
        back = await found(admin)

    assert exported.headers["Content-Type"].startswith("application/x-ndjson")
    entries = [json.loads(line) for line in exported.text.splitlines()]
    assert sorted(each["outboxId"] for each in entries) == sorted(ids)
    assert all(each["events"] for each in entries)
    assert (purged, none) == ({"dropped": 2, "hasMore": False}, [])
    assert (restored, again) == ({"given": 2, "restored": 2}, {"given": 2, "restored": 0})
    assert sorted(back) == sorted(ids)


async def test_export_of_any_size_arrives_whole(post: Carteiro) -> None:
    """Over a real connection, in more pieces than fit into one write."""
    async with a_client(post) as client:
        for _ in range(3):
            await sent(client, to=BOUNCES, text="x" * 200_000)
    await work(post)

    async with (
        served(post) as port,
        httpx.AsyncClient(headers={"X-API-Key": ADMIN_TOKEN}) as admin,
    ):
        exported = await admin.get(f"http://127.0.0.1:{port}{PATH}/export")

    entries = [json.loads(line) for line in exported.text.splitlines()]
    assert [len(each["originalData"]["text"]) for each in entries] == [200_000] * 3


async def test_contents_are_read_one_by_one_and_only_by_an_export(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A content may be a megabyte, and a page a thousand: of one tenant, they must not fill the memory of all."""
    await died(post, 3)
    read = contents_read(monkeypatch)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        assert len(await found(admin)) == 3
        await admin.post("/admin/v1/redrives/plan", json={})
        again = {"matching": {"companyId": BRASA}, "limit": 1000}
        await admin.post(f"{PATH}/redrive", json=again)
        assert read == []
        exported = await admin.get(f"{PATH}/export")
        assert read == [1, 1, 1]
        await admin.post(f"{PATH}/purge", json={"olderThanMs": 0})

    assert len(exported.text.splitlines()) == len(read) == 3


async def test_purge_spares_young_and_redriven_dead_letters(post: Carteiro) -> None:
    """Only old ones that match are deleted."""
    young, redriven = await died(post, 2)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        await admin.post(f"{PATH}/{redriven}/redrive")
        by_age = answer_in(await admin.post(f"{PATH}/purge", json={"olderThanMs": 3_600_000}))
        unmatched = answer_in(
            await admin.post(
                f"{PATH}/purge", json={"olderThanMs": 0, "matching": {"companyId": BRASA}}
            )
        )
        matched = answer_in(await admin.post(f"{PATH}/purge", json={"olderThanMs": 0}))
        unsaid = await admin.post(f"{PATH}/purge", json={})
        left = await found(admin)

    assert [each["dropped"] for each in (by_age, unmatched, matched)] == [0, 0, 1]
    assert left == [redriven]
    assert young not in left
    error_in(unsaid, 400, "MALFORMED_REQUEST")


@pytest.mark.parametrize("body", [b"not json\n", b'{"jobId":"x"}\n', b"\xff\n", b"[1]\n"])
async def test_invalid_line_of_an_import_is_named(post: Carteiro, body: bytes) -> None:
    """Nothing is imported."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        response = await imported(admin, body)

    assert response.status_code in {400, 422}
    assert all("line 1" in field for field in fields_in(response.json()["error"]))
