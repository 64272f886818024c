"""``carteiro verdicts``, and the history of ``carteiro classify``: evidence in the store, and rules from it."""

import asyncio
import json
import tomllib
from collections.abc import Sequence

from carteiro.cli.exit_codes import ExitCode
from carteiro.config import load
from carteiro.model import ZERO, Dead, DeadReason, End, Retry, Sent, TenantId, Verdict
from carteiro.ports import Backend
from carteiro.providers.answers import judge_answer
from carteiro.stores.open import open_backend
from support.builders import messages, tenants_named
from support.command_line import CommandLine
from support.steps import claimed, declare

ANSWER = "552 5.2.2 <ana@example.com>: Mailbox full"
FULL = judge_answer(ANSWER)


def fill(line: CommandLine, *parts: tuple[str, int, Sequence[Verdict]]) -> None:
    """A store with messages of tenants, with an attempt for each verdict."""
    asyncio.run(_filled(line, parts))


async def _filled(line: CommandLine, parts: Sequence[tuple[str, int, Sequence[Verdict]]]) -> None:
    settings = load(environ={"CARTEIRO_STORE": f"sqlite:///{line.file}"})
    async with open_backend(settings) as backend:
        await backend.tenants.define(tenants_named(sorted({tenant for tenant, *_ in parts})))
        for tenant, number, verdicts in parts:
            await backend.store.accept(messages(number, TenantId(tenant)))
            for verdict in verdicts:
                await _attempt(backend, number, verdict)


async def _attempt(backend: Backend, number: int, verdict: Verdict) -> None:
    jobs = await claimed(backend.store, limit=number)
    assert len(jobs) == number
    for job in jobs:
        await declare(backend.store, job)
    await backend.store.settle([End(job.lease, verdict) for job in jobs])


AGAIN = Retry(ZERO, charged=True, failure=FULL)
LOST = Dead(DeadReason.MAX_ATTEMPTS_EXCEEDED, FULL, charged=True)
SENT = Sent("sandbox", "id")


def _asked(line: CommandLine) -> dict[str, object]:
    return line.asked("classify", ANSWER)


def test_classify_shows_the_history(line: CommandLine) -> None:
    """Of all tenants, by attempt and by wait, with bounds; of such answers at any stage."""
    fill(line, ("acme", 6, [AGAIN, AGAIN, LOST]), ("brasa", 4, [AGAIN, SENT]))

    told = _asked(line)["history"]
    assert isinstance(told, dict)
    waits = told.pop("waits")
    assert told == {
        "days": 1,
        "count": 10,
        "sent": 4,
        "low": 0.1682,
        "high": 0.6873,
        "attempts": [
            {"attempt": 2, "count": 10, "sent": 4},
            {"attempt": 3, "count": 6, "sent": 0},
        ],
        "redriven": {"count": 0, "sent": 0, "low": 0.0, "high": 1.0},
    }
    assert sum(each["count"] for each in waits) == 16
    text = line.done("classify", ANSWER)
    assert "4 of 10 messages that were tried again within 1 day were sent (40.0%" in text
    assert "2: 4 of 10, 3: 0 of 6" in text
    [group] = line.listed("failures", "ls")
    shown = line.asked("failures", "show", group["id"])
    assert shown["history"] == told | {"waits": waits}
    assert "history" not in line.asked("failures", "show", group["id"], "--tenant", "acme")


def test_classify_without_a_history_is_only_the_verdict(line: CommandLine) -> None:
    """Without a store, without such failures, or if nobody wants to learn; a broken store is only noted."""
    assert "history" not in _asked(line)
    fill(line, ("acme", 2, [LOST]))
    assert "history" not in _asked(line)
    fill(line, ("acme", 2, [AGAIN, SENT]))
    assert "history" in _asked(line)
    off = line("classify", ANSWER, "--json", CARTEIRO_RETRY_LEARN="off")
    assert "history" not in off.document
    line.file.write_bytes(b"not a database" * 1000)
    ran = line("classify", ANSWER, "--json")
    assert (ran.code, ran.document["rule"]) == (ExitCode.OK, FULL.rule)
    assert "The history is not shown" in ran.err


def test_suggested_rule_fits_the_settings(line: CommandLine) -> None:
    """It can be added as it is, and then decides on the answer."""
    fill(line, ("acme", 60, [AGAIN, LOST]))

    text = line.done("verdicts", "suggest")
    [rule] = tomllib.loads(text)["verdicts"]
    [document] = line.listed("verdicts", "suggest")

    assert document["rule"] == rule
    assert document["evidence"] == {
        "count": 60,
        "sent": 0,
        "low": 0.0,
        "high": 0.0602,
        "wereRedriven": False,
        "tenants": 1,
        "withoutLargestTenant": 0,
    }
    assert (rule["retryable"], rule["category"]) == (False, "PERMANENT_ERROR")
    rules = json.dumps([rule | {"provider": "smtp"}])  # the sandbox plays answers of others
    judged = line("classify", ANSWER, CARTEIRO_VERDICTS=rules)
    assert f"own.{rule['name']}" in judged.out


def test_evidence_of_one_tenant_suggests_nothing_to_others(line: CommandLine) -> None:
    """Nor does agreement with the verdict."""
    fill(line, ("acme", 60, [AGAIN, LOST]), ("brasa", 3, [AGAIN, LOST]))

    ran = line("verdicts", "suggest")
    assert (ran.code, ran.out) == (ExitCode.OK, "")
    assert "No rule is suggested" in ran.err


def test_nothing_is_suggested_unless_wanted(line: CommandLine) -> None:
    """The answer names the setting."""
    fill(line, ("acme", 1, [LOST]))

    ran = line("verdicts", "suggest", CARTEIRO_RETRY_LEARN="off")
    assert ran.code == ExitCode.REFUSED
    assert 'retry.learn = "off"' in ran.err
