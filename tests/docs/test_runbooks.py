"""Runbooks work: every command is run, in order, on a store that has the described trouble."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from redis import Redis

from carteiro.app import Carteiro
from carteiro.cli.exit_codes import ExitCode
from carteiro.model import Category, DeadReason
from support.burying import buried
from support.command_line import CommandLine
from support.lane import RUNBOOKS as RUNBOOKS_OF_TICKETS
from support.pages import REPOSITORY, blocks_of, runnable
from support.redis_server import a_redis
from support.terminal import LANGUAGES, Terminal

RUNBOOKS = sorted(
    str(page.relative_to(REPOSITORY)) for page in (REPOSITORY / "docs/runbooks").glob("*.md")
)
CONTENT = '{"to":"ana@example.com","subject":"Bom dia","text":"Olá"}'
NO_ROOM = "[sqlite]\nmin_free_bytes = 999999999999999\n"
SHORT_CALLS = {"CARTEIRO_DELIVERY_CALL_LIMIT_MS": "200", "CARTEIRO_ENVIRONMENT": "development"}


def dead_letters_grow(line: CommandLine) -> None:
    """The provider was down; there is a wrong address; and one tenant's letters are not wanted."""
    line.tenant("acme")
    asyncio.run(_bury(line, "acme", "421", number=2))
    line.dead("--tenant", "acme")
    line.tenant("loud")
    asyncio.run(_bury(line, "loud", "SES_THROTTLING", category=Category.QUOTA_ERROR))


def one_tenant_takes_all(line: CommandLine) -> None:
    """One tenant has a long queue, another one message."""
    for tenant in ("acme", "loud"):
        line.tenant(tenant)
    for _ in range(3):
        line.sent("ok@sandbox.test", "--tenant", "loud", "--tag", "spring-sale")
    line.sent("ok@sandbox.test", "--tenant", "acme")


def nothing_is_sent(line: CommandLine) -> None:
    """A tenant is paused, and no worker runs."""
    line.tenant("acme")
    line.sent("ok@sandbox.test", "--tenant", "acme")
    line.done("tenant", "pause", "acme")


def many_failures(line: CommandLine) -> None:
    """One message is retried later, one is dead."""
    line.tenant("acme")
    line.sent("throttle-9@sandbox.test", "--tenant", "acme")
    line.worked_off()
    asyncio.run(_bury(line, "acme", "454"))


def duplicates(line: CommandLine) -> None:
    """The answers to both attempts were lost."""
    line.tenant("acme")
    message = line.sent("lost-reply@sandbox.test", "--tenant", "acme")
    while line.asked("show", message)["status"] != "FAILED":
        line.worked_off(**SHORT_CALLS)


def disk_full(line: CommandLine) -> None:
    """As if there were less space than must stay free."""
    line.sent()
    line.worked_off()
    (line.folder / "carteiro.toml").write_text(NO_ROOM)


def redis_near_its_limit(line: CommandLine, queue: str) -> None:
    """Foreign keys fill the server of the queue; a tenant is loud, and there are dead letters."""
    (line.folder / "carteiro.toml").write_text(f'queue = "{queue}"\n')
    line.tenant("loud")
    line.sent("ok@sandbox.test", "--tenant", "loud")
    with Redis.from_url(queue) as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 4_000_000)
        most = client.config_get("maxmemory")["maxmemory"]
        while client.info("memory")["used_memory"] < 0.95 * int(most):
            client.rpush("other:list", *["x" * 1000] * 20)


def template_fails(line: CommandLine) -> None:
    """A message of a template is dead; the template has a version."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    template = {"type": "welcome_user", "variables": {"user_data": {"full_name": "Ana"}}}
    (line.folder / "email.json").write_text(
        json.dumps({"to": "bounce-550@sandbox.test", "template": template})
    )
    line.done("send", "--tenant", "acme", "--file", "email.json")
    line.worked_off()


async def _bury(
    line: CommandLine,
    tenant: str,
    code: str,
    *,
    category: Category = Category.TRANSIENT_ERROR,
    number: int = 1,
) -> None:
    async with Carteiro.open(f"sqlite:///{line.file}") as post:
        for _ in range(number):
            await buried(
                post.backend,
                tenant,
                reason=DeadReason.MAX_ATTEMPTS_EXCEEDED,
                failure={"code": code, "category": category},
                content=CONTENT,
            )


PREPARED: Mapping[str, Callable[[CommandLine], None]] = {
    "docs/runbooks/circuit-open.md": many_failures,
    "docs/runbooks/dead-letters-grow.md": dead_letters_grow,
    "docs/runbooks/disk-full.md": disk_full,
    "docs/runbooks/duplicates.md": duplicates,
    "docs/runbooks/many-failures.md": many_failures,
    "docs/runbooks/nothing-is-sent.md": nothing_is_sent,
    "docs/runbooks/one-tenant-takes-all.md": one_tenant_takes_all,
    "docs/runbooks/slow-delivery.md": nothing_is_sent,
    "docs/runbooks/template-fails.md": template_fails,
}
NEAR_THE_LIMIT = "docs/runbooks/redis-near-its-limit.md"
FAILS = {"docs/runbooks/disk-full.md": {"carteiro doctor": ExitCode.FAILED}}


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A store in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.mark.parametrize("page", PREPARED)
def test_runbook_works(page: str, line: CommandLine) -> None:
    """Each command succeeds, or fails as the page says, and prints what the page shows."""
    PREPARED[page](line)

    Terminal(line.folder, fails=FAILS.get(page, {})).follow(page)


def test_redis_runbook_works(line: CommandLine) -> None:
    """On a server that is nearly full, and is not any more afterwards."""
    with a_redis() as server:
        redis_near_its_limit(line, server.url)
        host = server.url.partition("://")[2]

        Terminal(line.folder, words={"QUEUE": server.url}, places={"HOST": host}).follow(
            NEAR_THE_LIMIT
        )


def test_every_runbook_is_followed() -> None:
    """Here, or with the servers of the ticket lane."""
    assert set(RUNBOOKS) == PREPARED.keys() | {NEAR_THE_LIMIT, *RUNBOOKS_OF_TICKETS}


@pytest.mark.parametrize("page", RUNBOOKS)
def test_runbook_hides_no_command(page: str) -> None:
    """Every block with commands is run."""
    languages = {block.language for block in blocks_of(page)}

    assert list(runnable(page, *LANGUAGES))
    assert languages <= {"sh", "sql", "text"}


def test_dead_letters_are_gone_after_their_runbook(line: CommandLine) -> None:
    """Redriven and edited ones are sent; purged ones are in the file."""
    dead_letters_grow(line)
    Terminal(line.folder).follow("docs/runbooks/dead-letters-grow.md")
    line.worked_off()

    assert line.asked("stats")["states"] == {"SENT": 3, "FAILED": 1}
    assert line.listed("dead", "ls") == []
    assert "SES_THROTTLING" in (line.folder / "dead-letters.jsonl").read_text()
