"""Alerts over HTTP: seen, acknowledged, silenced, and their channels tested."""

from typing import Any

import httpx

from carteiro.api.admin.alerts import (
    AlertDefinitionView,
    AlertPage,
    AlertView,
    NoticeList,
    SilenceList,
    SilenceView,
)
from carteiro.app import Carteiro
from carteiro.model import AuditFilter, Role
from carteiro.model.alerts import Finding, NoticeKind
from support.builders import ACME, BRASA
from support.http import ADMIN_TOKEN, a_client, answer_in, error_in, let_in

ALERTS, SILENCES, NOTICES = "/admin/v1/alerts", "/admin/v1/silences", "/admin/v1/notices"
DEAD, OF_TENANT = "ManyDeadLetters", "TenantManyDeadLetters"
SILENCE = {"alert": OF_TENANT, "subject": ACME, "lastsMs": 3_600_000, "reason": "known ✉"}


async def fired(post: Carteiro) -> None:
    """Two alerts about tenants fire, and one about all."""
    findings = [
        Finding(DEAD, "", 101, 100),
        *(Finding(OF_TENANT, each, 51, 50) for each in (ACME, BRASA)),
    ]
    await post.backend.alerts.move(findings, post.settings.alert_rules())


async def listed(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    """Alerts, as the API shows them."""
    document = answer_in(await client.get(ALERTS, params=query))
    AlertPage.model_validate(document)
    items: list[dict[str, Any]] = document["items"]
    return items


async def test_alerts_are_listed_and_shown(post: Carteiro) -> None:
    """Of all or of one tenant, open or resolved; with what to do."""
    await fired(post)
    async with a_client(post, key=ADMIN_TOKEN) as client:
        found = await listed(client)
        own = await listed(client, companyId=ACME)
        over = await listed(client, state="resolved")
        shown = answer_in(await client.get(f"{ALERTS}/{OF_TENANT}"))
        unknown = await client.get(f"{ALERTS}/None")

    assert {(each["name"], each["companyId"]) for each in found} == {
        (DEAD, None),
        (OF_TENANT, ACME),
        (OF_TENANT, BRASA),
    }
    assert [(each["state"], each["value"]) for each in own] == [("firing", 51)]
    assert over == []
    AlertDefinitionView.model_validate(shown)
    assert (shown["severity"], len(shown["open"])) == ("warning", 2)
    assert shown["runbook"].startswith("docs/runbooks/")
    error_in(unknown, 404, "NOT_FOUND")


async def test_alert_is_acknowledged(post: Carteiro) -> None:
    """By the name of the token, which its notice has; once."""
    await fired(post)
    async with a_client(post, key=ADMIN_TOKEN) as client:
        asked = {"subject": ACME}
        done = answer_in(await client.post(f"{ALERTS}/{OF_TENANT}/acknowledge", json=asked))
        again = answer_in(await client.post(f"{ALERTS}/{OF_TENANT}/acknowledge", json=asked))
        none = await client.post(f"{ALERTS}/{OF_TENANT}/acknowledge", json={"subject": "nobody"})
        unknown = await client.post(f"{ALERTS}/None/acknowledge", json={})
    rows = (await post.backend.audit.list(AuditFilter(kind="alert"))).rows
    kinds = [each.notice.kind for each in await post.backend.alerts.waiting()]

    AlertView.model_validate(done)
    assert (done["state"], done["acknowledgedBy"]) == ("acknowledged", "admin")
    assert again == done
    error_in(none, 409, "CONFLICT")
    error_in(unknown, 404, "NOT_FOUND")
    assert [(row.action, row.object, row.tenant) for row in rows] == [
        ("acknowledge", f"{OF_TENANT} {ACME}", ACME)
    ]
    assert kinds.count(NoticeKind.ACKNOWLEDGED) == 1


async def test_pending_alert_cannot_be_acknowledged(post: Carteiro) -> None:
    async with a_client(post, key=ADMIN_TOKEN) as client:
        pending = Finding("TableQueuePending", "", 60, 50)
        await post.backend.alerts.move([pending], post.settings.alert_rules())
        refused = await client.post(f"{ALERTS}/TableQueuePending/acknowledge", json={})

    error_in(refused, 409, "CONFLICT")


async def test_alert_is_silenced_for_a_time(post: Carteiro) -> None:
    async with a_client(post, key=ADMIN_TOKEN) as client:
        made = answer_in(await client.post(SILENCES, json=SILENCE), 201)
        found = answer_in(await client.get(SILENCES))
        await fired(post)
        ended = await client.delete(f"{SILENCES}/{made['id']}")
        gone = await client.delete(f"{SILENCES}/{made['id']}")
        left = answer_in(await client.get(SILENCES))
        [kept] = answer_in(await client.get(f"{SILENCES}?state=all"))["items"]
        shown = answer_in(await client.get(f"{ALERTS}/{SILENCE['alert']}"))
    subjects = {each.notice.subject for each in await post.backend.alerts.waiting()}

    SilenceView.model_validate(made)
    SilenceList.model_validate(found)
    assert found["items"] == [made]
    assert (made["by"], made["reason"]) == ("admin", "known ✉")
    assert left["items"] == []
    assert shown["silences"] == [kept]
    assert kept == made | {"until": kept["until"]}
    assert kept["until"] < made["until"]
    assert subjects == {"", BRASA}
    assert ended.status_code == 204
    error_in(gone, 404, "NOT_FOUND")


async def test_wrong_silences_are_refused(post: Carteiro) -> None:
    """An unknown alert or tenant, no end, no reason."""
    wrong: list[dict[str, Any]] = [
        {"alert": "None"},
        {"subject": "nobody"},
        {"lastsMs": 0},
        {"lastsMs": 10**12},
        {"reason": ""},
    ]
    async with a_client(post, key=ADMIN_TOKEN) as client:
        for change in wrong:
            error = error_in(
                await client.post(SILENCES, json=SILENCE | change), 422, "INVALID_VALUE"
            )
            assert [each["field"] for each in error["details"]] == list(change)
        everything = await client.post(SILENCES, json=SILENCE | {"alert": "*", "subject": ""})

    assert everything.status_code == 201


async def test_test_notice_is_stored_for_every_channel(post: Carteiro) -> None:
    """And listed until each channel has it."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        made = answer_in(await client.post(f"{ALERTS}/test"), 202)
        await post.backend.alerts.spread(["log", "webhook"])
        found = answer_in(await client.get(NOTICES))

    NoticeList.model_validate(found)
    assert [(each["id"], each["channel"]) for each in found["items"]] == [
        (made["id"], "log"),
        (made["id"], "webhook"),
    ]
    assert found["items"][0]["title"] == "Test of the channels"


async def test_token_of_one_tenant_sees_its_alerts_alone(post: Carteiro) -> None:
    await fired(post)
    await let_in(post, ACME, "ca_acme", name="acme", role=Role.OPERATOR)
    async with a_client(post, key=ADMIN_TOKEN) as admin:
        for subject in (ACME, BRASA):
            answer_in(await admin.post(SILENCES, json=SILENCE | {"subject": subject}), 201)
    async with a_client(post, key="ca_acme") as client:
        found = await listed(client)
        shown = answer_in(await client.get(f"{ALERTS}/{OF_TENANT}"))
        other = await client.get(ALERTS, params={"companyId": BRASA})
        refused = await client.post(f"{ALERTS}/{OF_TENANT}/acknowledge", json={"subject": ACME})

    assert [each["companyId"] for each in found] == [ACME]
    assert [each["companyId"] for each in shown["open"]] == [ACME]
    assert [each["subject"] for each in shown["silences"]] == [ACME]
    error_in(other, 404, "NOT_FOUND")
    error_in(refused, 403, "FORBIDDEN")
