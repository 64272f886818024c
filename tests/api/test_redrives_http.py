"""Redrives over HTTP: plan, start, follow, pause, resume and cancel."""

from typing import Any

import httpx
import pytest

from carteiro.api.admin.redrives import PlanView, RedrivePage, RedriveView
from carteiro.app import Carteiro
from carteiro.model import Role
from support.builders import ACME, BRASA
from support.http import ADMIN_TOKEN, KEY_OF_BRASA, a_client, answer_in, error_in, let_in, sent
from support.library import work

PATH = "/admin/v1/redrives"
BOUNCES = "bounce-550@sandbox.test"


async def died(post: Carteiro, number: int = 1, *, key: str = "ck_acme") -> list[str]:
    """The ids of this many dead letters, oldest first."""
    async with a_client(post, key=key) as client:
        ids = [(await sent(client, to=BOUNCES))["outboxId"] for _ in range(number)]
    await work(post)
    return ids


async def start(client: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    """A redrive that was just started."""
    response = await client.post(PATH, json=asked)
    assert response.status_code == 202, response.text
    document: dict[str, Any] = response.json()
    RedriveView.model_validate(document)
    assert response.headers["Location"] == f"{PATH}/{document['id']}"
    return document


async def test_requester_is_the_name_of_the_token(post: Carteiro) -> None:
    """As the audit row and the timeline have it, without its role."""
    [letter, _] = await died(post, 2)
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        begun = await start(admin)
        answer_in(await admin.post(f"/admin/v1/dead-letters/{letter}/redrive"))
        timeline = answer_in(await admin.get(f"/admin/v1/messages/{letter}"))
        rows = answer_in(await admin.get("/admin/v1/audit", params={"kind": "redrive"}))

    told = [each["metadata"] or {} for each in timeline["events"]]
    [asked] = [each["redrivenBy"] for each in told if "redrivenBy" in each]
    assert [row["who"] for row in rows["items"]] == [begun["by"]] == [asked]


async def test_plan_counts_and_changes_nothing(post: Carteiro) -> None:
    """With groups, tenants, a sample and the expected time."""
    ids = await died(post, 2)
    await died(post, key=KEY_OF_BRASA)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        asked = {"matching": {"companyId": ACME}, "canary": 1, "maxRatePerSecond": 0.5}
        plan = answer_in(await admin.post(f"{PATH}/plan", json=asked))
        everything = answer_in(await admin.post(f"{PATH}/plan", json={}))
        listed = answer_in(await admin.get(PATH))

    PlanView.model_validate(plan)
    assert (plan["total"], plan["expectedMs"]) == (2, 2000)
    assert sorted(plan["sample"]) == sorted(ids)
    assert [(each["key"], each["count"]) for each in everything["tenants"]] == [
        (ACME, 2),
        (BRASA, 1),
    ]
    assert listed["items"] == []


async def test_redrive_is_started_and_followed(post: Carteiro) -> None:
    """The answer comes at once; its messages go when upkeep runs."""
    await died(post, 7)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        begun = await start(admin, matching={"code": "550"}, canary=2)
        await post.work_off()
        after = answer_in(await admin.get(f"{PATH}/{begun['id']}"))
        listed = answer_in(await admin.get(PATH))
        refused = await admin.post(f"{PATH}/{begun['id']}/pause")

    RedrivePage.model_validate(listed)
    assert (begun["state"], begun["total"], begun["redriven"]) == ("running", 7, 0)
    assert begun["matching"]["code"] == "550"
    assert (after["state"], after["redriven"], after["failed"]) == ("stopped", 2, 2)
    assert after["reason"] == "2 of 2 failed again, more than 20%."
    assert error_in(refused, 409, "CONFLICT")["message"] == (
        f"The redrive is stopped: POST {PATH}/{after['id']}/resume continues it"
    )
    assert listed["items"] == [after]


async def test_redrive_is_paused_resumed_and_cancelled(post: Carteiro) -> None:
    """A change that its state does not allow is refused, and names the state."""
    await died(post)

    async with a_client(post, key=ADMIN_TOKEN) as admin:
        begun = await start(admin)
        states = []
        for deed in ("pause", "pause", "resume", "cancel"):
            answer = answer_in(await admin.post(f"{PATH}/{begun['id']}/{deed}"))
            states.append(answer["state"])
        refused = await admin.post(f"{PATH}/{begun['id']}/resume")

    assert states == ["paused", "paused", "running", "cancelled"]
    assert error_in(refused, 409, "CONFLICT")["message"].startswith("The redrive is cancelled: ")


async def test_too_many_redrives_are_refused(post: Carteiro) -> None:
    """With the number, and what to do."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        for _ in range(5):
            await start(admin, matching={"companyId": ACME})
        refused = await admin.post(PATH, json={"matching": {"companyId": ACME}})
        await start(admin, matching={"companyId": BRASA})

    assert "5 redrives are open" in error_in(refused, 409, "CONFLICT")["message"]


async def test_token_for_one_tenant_redrives_only_its_own(post: Carteiro) -> None:
    """Whatever it asks for; other redrives are not found."""
    [own] = await died(post)
    await died(post, key=KEY_OF_BRASA)
    await let_in(post, ACME, "ca_scoped", name="ana", role=Role.OPERATOR)

    async with a_client(post, key=ADMIN_TOKEN) as admin, a_client(post, key="ca_scoped") as scoped:
        other = await start(admin, matching={"companyId": BRASA})
        plan = answer_in(await scoped.post(f"{PATH}/plan", json={}))
        begun = await start(scoped)
        listed = answer_in(await scoped.get(PATH))
        error_in(await scoped.get(f"{PATH}/{other['id']}"), 404, "NOT_FOUND")
        error_in(await scoped.post(f"{PATH}/{other['id']}/cancel"), 404, "NOT_FOUND")
        strange = {"matching": {"companyId": BRASA}}
        error_in(await scoped.post(PATH, json=strange), 404, "NOT_FOUND")

    assert (plan["total"], plan["sample"]) == (1, [own])
    assert (begun["companyId"], begun["total"]) == (ACME, 1)
    assert [each["id"] for each in listed["items"]] == [begun["id"]]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"canary": 0}, "canary"),
        ({"canary": 101}, "canary"),
        ({"maxRatePerSecond": 0}, "maxRatePerSecond"),
        ({"firstRatePerSecond": 100_001}, "firstRatePerSecond"),
        ({"maxFailedShare": 1.1}, "maxFailedShare"),
        ({"matching": {"age": 1}}, "matching.age"),
        ({"matching": {"movedBefore": "0001-01-01T00:00:00+14:00"}}, "matching.movedBefore"),
        ({"matching": {"movedAfter": "9999-12-31T23:59:59-14:00"}}, "matching.movedAfter"),
    ],
)
async def test_bad_question_is_refused(post: Carteiro, asked: dict[str, Any], field: str) -> None:
    """Nothing is started."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        error = error_in(await admin.post(PATH, json=asked), 422, "INVALID_VALUE")
        listed = answer_in(await admin.get(PATH))

    assert [each["field"] for each in error["details"]] == [field]
    assert listed["items"] == []


@pytest.mark.parametrize("unknown", ["x", "01900000-0000-7000-8000-000000000001"])
async def test_unknown_redrive_is_not_found(post: Carteiro, unknown: str) -> None:
    """Whatever it looks like."""
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        error_in(await admin.get(f"{PATH}/{unknown}"), 404, "NOT_FOUND")
        error_in(await admin.post(f"{PATH}/{unknown}/pause"), 404, "NOT_FOUND")
