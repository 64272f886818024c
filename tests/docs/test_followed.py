"""Tutorial and how-to pages can be followed: every command is run, in order, and prints what the page shows."""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest

from carteiro.app import Carteiro
from carteiro.model import Category, DeadReason
from carteiro.model.alerts import Finding
from support.burying import buried
from support.command_line import CommandLine
from support.lane import HOW_TO as TICKETS
from support.pages import blocks_of, pages, runnable
from support.running import PATIENCE_S, up
from support.terminal import LANGUAGES, Terminal, assert_printed

TUTORIAL = "docs/tutorial/first-email-over-http.md"
ORDER = '{"to":"ana@example.com","subject":"Order 17","text":"Thank you!"}'


def a_tenant(line: CommandLine) -> None:
    """A tenant without messages."""
    line.tenant("acme")


def a_message_that_waits(line: CommandLine) -> None:
    """One message is in the inbox, and one is scheduled."""
    line.tenant("acme")
    line.sent("ana@example.com", "--tenant", "acme")
    line.worked_off()
    line.sent("ana@example.com", *("--tenant", "acme"), *("--at", "2099-01-01T00:00:00Z"))


def letters(line: CommandLine) -> None:
    """Dead letters of two tenants: a wrong address, and a timeout of the provider."""
    for tenant in ("acme", "loud"):
        line.tenant(tenant)
        asyncio.run(_bury(line, tenant))
    line.dead("--tenant", "acme")


async def _bury(line: CommandLine, tenant: str) -> None:
    throttled = {"code": "SES_THROTTLING", "category": Category.QUOTA_ERROR}
    async with Carteiro.open(f"sqlite:///{line.file}") as post:
        await buried(
            post.backend,
            tenant,
            reason=DeadReason.MAX_ATTEMPTS_EXCEEDED,
            failure=throttled,
            content=ORDER,
        )


def people(line: CommandLine) -> None:
    """Two recipients of a tenant, and another tenant."""
    line.tenant("acme")
    line.tenant("loud")
    for email, known_as in (("ana@example.com", "customer-6"), ("rui@example.com", "customer-7")):
        recipient = {"email": email, "externalId": known_as}
        given = {"to": email, "subject": "Hello", "text": "…", "recipient": recipient}
        (line.folder / "email.json").write_text(json.dumps(given))
        line.done("send", "--tenant", "acme", "--file", "email.json")


def a_key(line: CommandLine) -> None:
    """A tenant with one key."""
    line.tenant("acme")
    line.done("key", "add", "--tenant", "acme")


def an_alert(line: CommandLine) -> None:
    """A tenant with an alert that fires."""
    line.tenant("acme")

    async def fire() -> None:
        async with Carteiro.open(f"sqlite:///{line.file}") as post:
            found = [Finding("TenantManyDeadLetters", "acme", 51, 50)]
            await post.backend.alerts.move(found, post.settings.alert_rules())

    asyncio.run(fire())


PREPARED: Mapping[str, Callable[[CommandLine], None]] = {
    "docs/how-to/back-up.md": a_message_that_waits,
    "docs/how-to/be-told.md": an_alert,
    "docs/how-to/find-a-cause.md": letters,
    "docs/how-to/find-a-message.md": a_message_that_waits,
    "docs/how-to/give-people-access.md": a_tenant,
    "docs/how-to/forget-somebody.md": people,
    "docs/how-to/judge-answers-yourself.md": letters,
    "docs/how-to/hear-from-providers.md": a_tenant,
    "docs/how-to/limit-a-tenant.md": a_tenant,
    "docs/how-to/redrive-safely.md": letters,
    "docs/how-to/rotate-keys.md": a_key,
    "docs/how-to/run-from-cron.md": a_message_that_waits,
}
SERVED = [
    "docs/how-to/monitor.md",
    "docs/how-to/read-mails-in-tests.md",
    "docs/how-to/send-over-http.md",
    TUTORIAL,
]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A store in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.mark.parametrize("page", PREPARED)
def test_page_can_be_followed(page: str, line: CommandLine) -> None:
    """Each command succeeds and prints what the page shows."""
    PREPARED[page](line)
    keys = line.listed("key", "ls", "--tenant", "acme")

    Terminal(line.folder, {"OLD_KEY": keys[-1]["id"]} if keys else {}).follow(page)


@pytest.mark.parametrize("page", SERVED)
async def test_page_can_be_followed_alongside_a_server(page: str, line: CommandLine) -> None:
    """The same, with `carteiro up` in another terminal."""
    async with up(line.folder) as running:
        key, token = running.keys
        terminal = Terminal(
            line.folder,
            {"KEY": key, "TOKEN": token},
            address=running.address,
            meanwhile=partial(wait_for_the_worker, line),
        )
        await asyncio.to_thread(terminal.follow, page)


def wait_for_the_worker(line: CommandLine) -> None:
    """Wait until nothing is due: people are slower than that."""
    until = monotonic() + PATIENCE_S
    while any(each["inFlight"] or each["oldestDueAt"] for each in line.asked("stats")["depths"]):
        assert monotonic() < until
        sleep(0.02)


async def test_first_start_prints_what_the_tutorial_shows(line: CommandLine) -> None:
    shown = next(block for block in blocks_of(TUTORIAL) if block.language == "text")
    async with up(line.folder) as running:
        said = running.announced.replace(running.address, "http://127.0.0.1:8025")

    assert_printed(said, shown.code, where=TUTORIAL)


def test_every_page_with_commands_is_followed() -> None:
    """A page that this test forgets proves nothing."""
    with_commands = {page for page in pages() if list(runnable(page, *LANGUAGES))}
    runbooks = {page for page in with_commands if page.startswith("docs/runbooks/")}

    assert with_commands == PREPARED.keys() | {*SERVED, TICKETS} | runbooks
