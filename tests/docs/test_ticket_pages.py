"""The pages of the ticket lane work, with real servers and with a worker and an archiver running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.lane import HOW_TO, NOT_REACHING, RECOVER, Lane, a_lane
from support.pages import blocks_of, runnable, text_of
from support.shared_servers import shared_kafka
from support.terminal import LANGUAGES, Terminal

HANDLERS = """
from datetime import timedelta
from pathlib import Path

from carteiro.policy.retry import RetryPolicy
from carteiro.tickets import Permanent, Ticket, Tickets

tickets = Tickets()
soon = RetryPolicy(max_attempts=3, base=timedelta(milliseconds=10))


@tickets.handler("BUILD", retry=soon)
async def build(ticket: Ticket) -> None:
    if not Path("registry-is-back").exists():
        raise ConnectionError("the registry does not answer")


@tickets.handler("TEST")
async def test(ticket: Ticket) -> None:
    raise Permanent("a test needs a commit")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text(HANDLERS, "utf-8")
    return tmp_path


@pytest.fixture
def lane(folder: Path) -> Iterator[Lane]:
    """An empty lane."""
    with a_lane(folder) as made:
        yield made


def follow(lane: Lane, page: str) -> None:
    """Run the commands of a page, each when the lane is idle."""
    Terminal(lane.folder, places=lane.places, meanwhile=lane.until_settled).follow(page)


def test_lane_runs_as_its_page_says(lane: Lane) -> None:
    """With the handlers of the page, a ticket is done, and another dead."""
    handlers = next(block for block in blocks_of(HOW_TO) if block.language == "python")
    (lane.folder / "builds.py").write_text(handlers.code, "utf-8")

    with lane.worker("--app", "builds:tickets"), lane.archive():
        follow(lane, HOW_TO)


def test_tickets_are_recovered_as_the_runbook_says(lane: Lane) -> None:
    """Tickets that failed in an outage are done afterwards, and unwanted ones are quarantined."""
    lane.put({"ticket_id": "T-3", "task_type": "TEST"}, b"no ticket")

    with lane.worker("--app", "jobs:tickets"), lane.archive():
        for each in ("T-1", "T-2"):  # lists begin with the newest
            lane.put({"ticket_id": each, "task_type": "BUILD"})
            lane.until_settled()
        (lane.folder / "registry-is-back").touch()
        follow(lane, RECOVER)
        lane.until_said("worker", r'tickets_done_total{task_type="BUILD"} 2\.0')


def test_blocked_dlq_is_diagnosed_as_the_runbook_says(folder: Path) -> None:
    """Here the topic takes no dead letter; it is written as soon as the topic accepts it."""
    with a_lane(folder, dlq_settings={"max.message.bytes": "64"}) as lane:
        lane.put({"ticket_id": "T-1", "task_type": "BUILD"})
        with lane.worker("--app", "jobs:tickets"), lane.archive():
            lane.until_said("worker", 'publish_errors_total{error_type="MSG_SIZE_TOO_LARGE"} [1-9]')
            paste(lane, NOT_REACHING, before="## Act")

            shared_kafka().change_topic(f"{lane.topic}.dlq", {"max.message.bytes": "2097152"})
            lane.until_settled()
            paste(lane, NOT_REACHING, after="## Act")

            lane.until_said("worker", r"carteiro_tickets_held_keys 0\.0")
            assert "dlq_published" in (folder / "worker.log").read_text("utf-8")


def paste(lane: Lane, page: str, *, after: str = "", before: str = "") -> None:
    """Run the commands of a part of a page."""
    text = text_of(page)
    begin = text.index(after)
    lines = [text.count("\n", 0, at) for at in (begin, text.index(before) if before else len(text))]
    terminal = Terminal(lane.folder, places=lane.places)
    for block, printed in runnable(page, *LANGUAGES):
        if lines[0] < block.line < lines[1]:
            terminal.paste(block, printed, page=page)
