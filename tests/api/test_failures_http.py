"""Failure groups over HTTP: of all for administrators, of one tenant for a token of it."""

from typing import Any

from carteiro.app import Carteiro
from carteiro.model import AuditFilter, Role
from support.builders import BRASA
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    answer_in,
    error_in,
    let_in,
    sent,
)
from support.library import work

PATH = "/admin/v1/failures"
TOKEN = "ca_of_brasa"


async def _lived(post: Carteiro) -> list[str]:
    """Two e-mails of ACME and one of BRASA bounced; one of ACME is greylisted."""
    ids = []
    for key, to in (
        (KEY_OF_ACME, "bounce-550@sandbox.test"),
        (KEY_OF_ACME, "bounce-550@sandbox.test"),
        (KEY_OF_BRASA, "bounce-550@sandbox.test"),
        (KEY_OF_ACME, "greylist@sandbox.test"),
    ):
        async with a_client(post, key=key) as client:
            ids.append((await sent(client, to=to))["outboxId"])
    await work(post)
    return ids


async def _asked(post: Carteiro, path: str = "", key: str = ADMIN_TOKEN, **query: str) -> Any:
    async with a_client(post, key=key) as client:
        return answer_in(await client.get(f"{PATH}{path}", params=query))


async def _bounced(post: Carteiro, **query: str) -> dict[str, Any]:
    [group] = [each for each in (await _asked(post, **query))["items"] if each["deaths"]]
    return dict(group)


async def test_administrator_sees_all_groups(post: Carteiro) -> None:
    """With counts by hour and tenant, samples and advice."""
    ids = await _lived(post)

    group = await _bounced(post)
    report = await _asked(post, f"/{group['id']}")

    assert len((await _asked(post))["items"]) == 2
    assert (group["provider"], group["state"], group["attempts"]) == ("sandbox", "open", 3)
    assert group["action"]
    assert group["runbook"].startswith("docs/runbooks/")
    assert report["group"] == group
    assert [(each["attempts"], each["deaths"]) for each in report["hours"]] == [(3, 3)]
    parts = {each["companyId"]: each["deaths"] for each in report["tenants"]}
    assert parts == {"acme": 2, "brasa": 1}
    assert {*report["samples"]} == {*ids[:3]}


async def test_lists_are_filtered(post: Carteiro) -> None:
    """By tenant, state and provider."""
    await _lived(post)
    group = await _bounced(post)

    assert (await _bounced(post, companyId="brasa"))["deaths"] == 1
    assert (await _asked(post, state="resolved"))["items"] == []
    assert (await _asked(post, provider="smtp"))["items"] == []
    first = await _asked(post, limit="1")
    second = await _asked(post, limit="1", cursor=first["nextCursor"])
    assert len({first["items"][0]["id"], second["items"][0]["id"], group["id"]}) == 2


async def test_token_of_a_tenant_sees_only_its_part(post: Carteiro) -> None:
    """Counts and samples of others are not there, and it changes no state."""
    ids = await _lived(post)
    await let_in(post, BRASA, TOKEN, name="bia", role=Role.ADMIN)

    [group] = (await _asked(post, key=TOKEN))["items"]
    report = await _asked(post, f"/{group['id']}", key=TOKEN)
    others = [each["id"] for each in (await _asked(post))["items"] if each["id"] != group["id"]]
    async with a_client(post, key=TOKEN) as client:
        error_in(await client.get(f"{PATH}/{others[0]}"), 404, "NOT_FOUND")
        error_in(await client.post(f"{PATH}/{group['id']}/acknowledge"), 403, "FORBIDDEN")

    assert (group["attempts"], group["deaths"]) == (1, 1)
    assert report["tenants"] == [{"companyId": "brasa", "attempts": 1, "deaths": 1}]
    assert report["samples"] == [ids[2]]


async def test_state_is_changed_and_audited(post: Carteiro) -> None:
    """The answer is the group as it is then; an unknown one is not found."""
    await _lived(post)
    group = await _bounced(post)

    async with a_client(post, key=ADMIN_TOKEN) as client:
        states = [
            answer_in(await client.post(f"{PATH}/{group['id']}/{action}"))["state"]
            for action in ("acknowledge", "resolve", "ignore")
        ]
        error_in(await client.post(f"{PATH}/0123456789ab/acknowledge"), 404, "NOT_FOUND")

    rows = (await post.backend.audit.list(AuditFilter(kind="failure group"))).rows
    assert states == ["acknowledged", "resolved", "ignored"]
    assert [row.action for row in rows] == ["ignore", "resolve", "acknowledge"]
    assert {row.object for row in rows} == {group["id"]}
