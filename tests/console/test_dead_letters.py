"""Failures, dead letters and redrives: found, looked at, dealt with and exported, as roles and tenants may."""

import re
from html import unescape
from typing import Any

import orjson
import pytest

from carteiro.app import Carteiro
from carteiro.console.words import words_in
from carteiro.model import (
    AuditFilter,
    AuditRow,
    DeadFilter,
    FailureFilter,
    GroupState,
    Redrive,
    RedriveState,
    Role,
    Via,
)
from carteiro.policy import advice
from support.builders import ACME, BRASA, a_failure, dead
from support.burying import buried
from support.console import Person, a_console, a_person, a_token
from support.redriving import advanced, put_into, shown, started, worked

HOSTILE = '<img src=x onerror="alert(1)">'


async def the_group(post: Carteiro) -> str:
    """The id of the only failure group."""
    await post.backend.rollups.fold(limit=1000, most=1000)
    [group] = (await post.backend.failures.list()).rows
    return group.id


async def newest(post: Carteiro, kind: str) -> AuditRow:
    """The newest audit row about this kind of thing."""
    return (await post.backend.audit.list(AuditFilter(kind=kind), limit=1)).rows[0]


async def test_groups_lead_to_their_page_their_letters_and_a_redrive(post: Carteiro) -> None:
    """With hours, tenants, newest messages, and advice; filters are in the address."""
    own, other = await buried(post.backend, ACME), await buried(post.backend, BRASA)
    group = await the_group(post)
    await a_token(post.backend, "of acme", tenant=ACME)

    async with (
        a_console(post) as (address, _),
        Person.at(address) as admin,
        Person.at(address) as one,
    ):
        await admin.signed_in()
        await one.signed_in("ca_of acme")
        listed = await admin.page("dead-letters")
        assert f"/console/dead-letters/groups/{group}" in listed
        assert "2 failures in the last 48 hours" in listed
        assert "2 dead letters" in listed
        assert "No group matches" in await admin.page("dead-letters", state="ignored")
        assert "should be one of" in await admin.page("dead-letters", 422, state="x")

        page = await admin.page(f"dead-letters/groups/{group}")
        for link in (f"messages/{own}", f"messages/{other}", f"redrives/plan?group={group}"):
            assert f"/console/{link}" in page
        assert f"group={group}&tenant={ACME}" in page
        assert "Resolve" in page

        page = await one.page(f"dead-letters/groups/{group}")
        assert f"messages/{own}" in page
        assert BRASA not in page
        assert str(other) not in page
        assert "Resolve" not in page
        assert "1 dead letter<" in await one.page("dead-letters")
        await one.page(f"dead-letters/groups/{group}", 404, tenant=BRASA)
        await admin.page("dead-letters/groups/unknown", 404)


@pytest.mark.parametrize("role", list(Role))
async def test_state_of_a_group_changes_as_the_role_allows(post: Carteiro, role: Role) -> None:
    """With an audit row of the console; a resolved group is not acknowledged."""
    await buried(post.backend)
    group = await the_group(post)
    await a_token(post.backend, "bia", role=role)
    may = role.covers(Role.OPERATOR)

    async with a_person(post, "ca_bia") as person:
        for verb, state in (
            ("ignore", "ignored"),
            ("acknowledge", "acknowledged"),
            ("resolve", "resolved"),
        ):
            answer = await person.sent(f"dead-letters/groups/{group}/{verb}")
            assert answer.status_code == (200 if may else 403)
            [after] = (await post.backend.failures.list()).rows
            assert after.state == (state if may else GroupState.OPEN)
        if may:
            row = await newest(post, "failure group")
            assert (row.who, row.via, row.action) == ("bia", Via.CONSOLE, "resolve")
            answer = await person.sent(f"dead-letters/groups/{group}/acknowledge")
            assert answer.status_code == 409
            assert "A resolved group cannot be acknowledged" in answer.text


async def test_list_of_dead_letters_filters_pages_and_exports(post: Carteiro) -> None:
    """The export has the same ones, with their content and history, as one JSON document a line."""
    for _ in range(51):
        await buried(post.backend, ACME)
    other = await buried(post.backend, BRASA, failure={"code": "421"})
    await a_token(post.backend, "of acme", tenant=ACME)

    async with (
        a_console(post) as (address, _),
        Person.at(address) as admin,
        Person.at(address) as one,
    ):
        await admin.signed_in()
        await one.signed_in("ca_of acme")
        first = await admin.page("dead-letters/list", tenant=ACME)
        following = re.search(r'rel="next" href="/console/([^"]+)"', first)
        assert following
        second = await admin.page(following[1])
        assert (first + second).count("<tr data-row>") == 51
        assert f"/console/messages/{other}" in await admin.page("dead-letters/list", code="421")
        for wrong in ("redriven", "reason", "category", "after", "before"):
            assert (await admin.get("dead-letters/list", params={wrong: "x"})).status_code == 422
        for query in ("redriven=yes", "before=2001-01-01T00:00", "kind=task"):
            assert "No dead letter matches" in await admin.page(f"dead-letters/list?{query}")

        answer = await admin.get("dead-letters/export?code=421")
        [line] = answer.text.splitlines()
        assert orjson.loads(line)["outboxId"] == other
        assert orjson.loads(line)["events"]
        assert "attachment" in answer.headers["content-disposition"]
        lines = (await one.get("dead-letters/export")).text.splitlines()
        assert len(lines) == 51
        assert {orjson.loads(each)["companyId"] for each in lines} == {ACME}
        await one.page("dead-letters/export", 404, tenant=BRASA)


async def test_redrive_is_planned_started_watched_and_ended(post: Carteiro) -> None:
    """The pace is in the address; each change asks first where it cannot be undone, and has an audit row."""
    letters = [await buried(post.backend) for _ in range(3)]
    await buried(post.backend, BRASA)
    backend = post.backend

    async with a_person(post) as person:
        pace = "canary=1&maxRatePerSecond=5&maxFailedPercent=12.5"
        plan = await person.page(f"redrives/plan?tenant={ACME}&{pace}")
        assert all(f"messages/{each}" in plan for each in letters)
        assert "up to 5" in plan
        for wrong in ({"canary": "0"}, {"maxFailedPercent": "x"}, {"maxFailedPercent": "nan"}):
            assert (await person.get("redrives/plan", params=wrong)).status_code == 422
        assert (await backend.redrives.list()).rows == []

        action = re.search(r'action="/console/(redrives\?[^"]+)"', plan)
        assert action
        asked = await person.sent(action[1])
        assert "Send these dead letters again?" in asked.text
        assert (await backend.redrives.list()).rows == []
        answer = await person.sent(action[1], {"confirmed": "yes"})
        [redrive] = (await backend.redrives.list()).rows
        assert str(answer.url).endswith(f"/console/redrives/{redrive.id}")
        assert (redrive.wanted.tenant, redrive.total, redrive.ramp.canary) == (ACME, 3, 1)
        assert (redrive.ramp.max_rate, redrive.ramp.max_failed, redrive.by) == (5, 0.125, "admin")
        row = await newest(post, "redrive")
        assert (row.via, row.object) == (Via.CONSOLE, redrive.id)

        await advanced(backend)
        await worked(backend, dead())
        await advanced(backend)
        page = await person.page(f"redrives/{redrive.id}")
        assert 'data-state="stopped"' in page
        assert "1 of 1 failed again" in page
        for verb, after in (("pause", None), ("resume", "running"), ("pause", "paused")):
            answer = await person.sent(f"redrives/{redrive.id}/{verb}")
            assert answer.status_code == (409 if after is None else 200)
            assert (await shown(backend, redrive)).state == (after or "stopped")
        await person.sent(f"redrives/{redrive.id}/cancel")
        assert (await shown(backend, redrive)).state is RedriveState.PAUSED
        await person.sent(f"redrives/{redrive.id}/cancel", {"confirmed": "yes"})
        assert (await shown(backend, redrive)).state is RedriveState.CANCELLED
        assert "Resume" not in await person.page(f"redrives/{redrive.id}")
        assert f"redrives/{redrive.id}" in await person.page("redrives")
        assert (await newest(post, "redrive")).action == "cancel"


async def test_tenants_token_redrives_its_own_alone(post: Carteiro) -> None:
    """An operator of a tenant; a viewer sees the plan, and no button."""
    await buried(post.backend)
    await buried(post.backend, BRASA)
    await a_token(post.backend, "own", role=Role.OPERATOR, tenant=ACME)
    await a_token(post.backend, "looks", tenant=ACME)

    async with (
        a_console(post) as (address, _),
        Person.at(address) as own,
        Person.at(address) as looks,
    ):
        await own.signed_in("ca_own")
        await looks.signed_in("ca_looks")
        assert BRASA not in await own.page("redrives/plan")
        assert "Start the redrive" not in await looks.page("redrives/plan")
        assert (await looks.sent("redrives", {"confirmed": "yes"})).status_code == 403
        assert (await own.sent("redrives?tenant=brasa", {"confirmed": "yes"})).status_code == 404
        await own.sent("redrives", {"confirmed": "yes"})
        [redrive] = (await post.backend.redrives.list()).rows
        assert (redrive.tenant, redrive.total) == (ACME, 1)
        other = await started(post.backend, tenant=BRASA)
        for path in ("", "/pause", "/resume"):
            send: Any = own.sent if path else own.get
            assert (await send(f"redrives/{other.id}{path}")).status_code == 404
        assert other.id not in await own.page("redrives")


async def test_progress_of_a_redrive_is_live(post: Carteiro) -> None:
    """One topic a redrive; a tenant's own viewer sees none of another."""
    await buried(post.backend)
    redrive = await started(post.backend, tenant=ACME)
    async with a_console(post) as (_, console):
        topic = console.hub.topic(f"redrive:{redrive.id}")
        assert topic
        assert topic.needs == "GET /admin/v1/redrives/{id}"
        before = await topic.read(None)
        await put_into(post.backend, redrive, RedriveState.PAUSED)
        after = await topic.read(ACME)
        assert isinstance(after, Redrive)
        assert (before.state, after.state) == (RedriveState.RUNNING, RedriveState.PAUSED)
        assert await topic.read(BRASA) is None
        for wrong in ("redrive:x", "redrive:", "unknown:x"):
            found = console.hub.topic(wrong)
            assert found is None or await found.read(None) is None
        async with a_person(post) as person:
            page = await person.page(f"redrives/{redrive.id}")
            assert f'data-live="redrive:{redrive.id}"' in page


async def test_texts_of_failures_are_escaped_and_cut(post: Carteiro) -> None:
    """Codes and reasons come from servers of others; filters from anybody's link."""
    hostile = a_failure(code=HOSTILE[:40], reason=HOSTILE * 1000)
    await buried(post.backend, failure={"code": hostile.code, "reason": hostile.reason})
    group = await the_group(post)
    async with a_person(post) as person:
        for path, query in {
            "dead-letters": {"provider": HOSTILE},
            "dead-letters/list": {},
            f"dead-letters/groups/{group}": {},
            "redrives/plan": {},
            "redrives": {},
        }.items():
            for each in ({}, query):
                text = (await person.get(path, params=each)).text
                assert HOSTILE[:12] not in text
                assert len(text) < 60_000
    wanted = DeadFilter(text=HOSTILE)
    await post.backend.redrives.start(
        wanted, by=HOSTILE, ramp=(await started(post.backend)).ramp, total=0
    )
    async with a_person(post) as person:
        for redrive in (await post.backend.redrives.list()).rows:
            assert HOSTILE not in (await person.get(f"redrives/{redrive.id}")).text
        listed = (await person.get("redrives")).text
        assert HOSTILE not in listed
        assert HOSTILE in unescape(listed)


def test_every_advice_has_a_text() -> None:
    """In each language; and there is no other."""
    known = {each.name for each in vars(advice).values() if isinstance(each, advice.Advice)}
    known |= {each.name for each in advice._BY_RULE.values()}
    for language in ("en", "pt"):
        texts = words_in(language).texts
        assert {key.removeprefix("advice.") for key in texts if key.startswith("advice.")} == known


async def test_filter_of_a_tenant_stays_on_the_way(post: Carteiro) -> None:
    """From its groups to the group, its letters and its plan."""
    await buried(post.backend)
    await buried(post.backend, BRASA)
    group = await the_group(post)
    assert (await post.backend.failures.list(FailureFilter(tenant=ACME))).rows
    async with a_person(post) as person:
        assert f"groups/{group}?tenant={ACME}" in await person.page("dead-letters", tenant=ACME)
        page = await person.page(f"dead-letters/groups/{group}", tenant=ACME)
        assert f"plan?group={group}&tenant={ACME}" in page
        assert "all others" not in page
