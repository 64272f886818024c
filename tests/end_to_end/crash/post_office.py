"""The app of the crash suite: short durations, quick retries and a few tasks."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias
from unittest.mock import patch

from carteiro import Carteiro, app
from carteiro.channels.loops import AlertLoops
from carteiro.config import load
from carteiro.engine.tasks import Task
from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Kind, Pool
from carteiro.maintenance import automatic_redrives
from carteiro.maintenance.alerts import evaluate_alerts
from carteiro.maintenance.notices import send_notices
from carteiro.maintenance.redrives import redrive_once, run_redrives
from carteiro.maintenance.relay import relay
from carteiro.model import LeasedJob
from carteiro.model.alerts import Finding, Notice
from carteiro.policy import suspicion
from carteiro.policy.retry import RetryPolicy
from carteiro.stores import open as opening
from carteiro.stores.open import open_backend
from end_to_end.crash.places import Place
from end_to_end.crash.points import Points, watched_backend, watched_chain, watched_kind
from support.ses_twin import KEY_ID, REGION, secret_file

MILLISECOND = timedelta(milliseconds=1)
CALL_LIMIT = timedelta(milliseconds=300)
_OTHERS = (
    1  # times as long as a suspect took: a task of two seconds must not delay the next by minutes
)
HOLD = CALL_LIMIT + timedelta(milliseconds=200)
LEASE = timedelta(milliseconds=500)
DEADLY_ADDRESS = "deadly@"
TOLD = "told:"  # begins the mark of a notice
QUICK = RetryPolicy(max_attempts=5, base=timedelta(milliseconds=10), cap=timedelta(milliseconds=40))


async def _quick_redrives(*ports: Any) -> None:
    """As upkeep, but it runs often, and does not lead for long after its death."""
    while True:
        with suppress(StoreUnavailable):
            await redrive_once(*ports)
        await asyncio.sleep(LEASE.total_seconds() / 5)


async def _quick_starts(*ports: Any) -> None:
    """The same for automatic redrives."""
    while True:
        with suppress(StoreUnavailable):
            await automatic_redrives.start_automatic_redrives(*ports)
        await asyncio.sleep(LEASE.total_seconds() / 5)


# It runs often, and does not lead for long after its death.
_QUICK_RELAY = partial(relay, every=LEASE / 5, term=LEASE)

Deadly: TypeAlias = Callable[
    [int], None
]  # called with the number of deliveries that would die with it


@dataclass(frozen=True)
class Tasks:
    """The tasks of the suite; each leaves its ``mark`` behind when it has run."""

    note: Task
    note_in_thread: Task
    note_once: Task
    linger: Task
    deadly: Task
    unattended: Task
    fleeting: Task


class MarkChannel:
    """Tells people by a mark."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def send(self, notice: Notice) -> None:
        """Leave a mark."""
        leave_mark(self._place, f"{TOLD}{notice.alert}")

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Nothing: a mark stays."""


class MarkedAlerts(AlertLoops):
    """One alert that fires, and a channel that leaves marks; quick loops, where they are to be killed."""

    post: "PostOffice"

    def loops(self) -> list[Any]:
        """As a worker has them."""
        if not self.post.points.is_about_alerts:
            return []
        ports, rules = self.post.backend, self.post.settings.alert_rules()
        rules = replace(rules, dead_letters_every=None)

        async def findings() -> list[Finding]:
            return [Finding("ManyDeadLetters", "", 101, 100)]

        channels = {"marks": MarkChannel(self.post.place)}
        return [
            evaluate_alerts(ports.upkeep, ports.alerts, findings, rules, every=LEASE / 5),
            send_notices(ports.upkeep, ports.alerts, channels, rules, every=LEASE / 5),
        ]


class PostOffice(Carteiro):
    """Carteiro with points around its ports and kinds."""

    points: Points
    tasks: Tasks
    place: Place
    unattended: frozenset[str] = frozenset()
    deadly: Deadly | None = None

    def _pools(self) -> list[Pool]:
        """The default pools, with quick retries."""
        return [
            replace(
                pool,
                kinds=tuple(
                    self._watched(kind) for kind in pool.kinds if kind.name not in self.unattended
                ),
            )
            for pool in super()._pools()
        ]

    def _watched(self, kind: Kind) -> Kind:
        if kind.chain is not None:
            kind = replace(kind, chain=watched_chain(kind.chain, self._watched_part))
        return self._watched_part(kind)

    def _watched_part(self, kind: Kind) -> Kind:
        quick = replace(kind, policy=lambda _: QUICK)
        return watched_kind(quick, self.points, self._look)

    def _look(self, job: LeasedJob) -> None:
        if self.deadly is not None and DEADLY_ADDRESS in (job.content or ""):
            self.deadly(self.points.running)


@asynccontextmanager
async def opened(
    place: Place,
    points: Points | None = None,
    *,
    grace: timedelta = timedelta(seconds=10),
    lingering: timedelta = timedelta(0),
    command_timeout: timedelta = timedelta(seconds=30),
    lease: timedelta = LEASE,
    as_usual: bool = False,
    deadly: Deadly | None = None,
    unattended: frozenset[str] = frozenset(),
    redrives_itself: bool = False,
) -> AsyncIterator[PostOffice]:
    """Open the store; ``unattended`` are the tasks that this process does not run.

    ``redrives_itself``: dead letters of a throttling provider soon, and once; else none, so that it comes to rest.

    ``as_usual``: with the default timeouts, leases, relay and ration of suspects.
    """
    points = points or Points()
    settings = load(
        environ={},
        overrides={
            "store": place.store,
            "queue": place.queue,
            **(_through_ses(place) if place.ses else {}),
            **({} if as_usual else _short(lease)),
            **(_through_resend(place.resend) if place.resend else {}),
            "delivery.grace_ms": grace // MILLISECOND,
            "postgres.command_timeout_ms": command_timeout // MILLISECOND,
            "sqlite.min_free_bytes": 0,
            "automatic_redrive.enabled": redrives_itself,
            "automatic_redrive.cool_down_ms": 20,
            "automatic_redrive.rounds": 1,
            "workers.sync_task_threads": 4,
        },
    )
    threads = ThreadPoolExecutor(4)
    try:
        with (
            patch.object(opening, "relay", relay if as_usual else _QUICK_RELAY),
            patch.object(app, "run_redrives", run_redrives if as_usual else _quick_redrives),
            patch.object(app, "redrive_automatically", _quick_starts),
            patch.object(automatic_redrives, "may_try", lambda _: True),
            patch.object(suspicion, "OTHERS", suspicion.OTHERS if as_usual else _OTHERS),
        ):
            async with open_backend(settings) as backend:
                post = PostOffice(watched_backend(backend, points), settings, threads=threads)
                post.points = points
                post.place = place
                post.unattended = unattended
                post.deadly = deadly
                post.alert_loops = MarkedAlerts(post.backend, settings, post.accepting)
                post.alert_loops.post = post
                post.tasks = _tasks(post, place, lingering)
                yield post
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def _short(lease: timedelta) -> dict[str, object]:
    """Short durations; with a long lease a hold does not end soon either."""
    margin = max(HOLD - CALL_LIMIT, lease / 12)
    return {
        "delivery.call_limit_ms": CALL_LIMIT // MILLISECOND,
        "delivery.hold_margin_ms": margin // MILLISECOND,
        "delivery.lease_ms": lease // MILLISECOND,
    }


def _through_ses(place: Place) -> dict[str, object]:
    return {
        "provider": "ses",
        "ses.endpoint_url": place.ses,
        "ses.region": REGION,
        "ses.access_key_id": KEY_ID,
        "ses.secret_access_key": f"file:{secret_file(place.ses_folder)}",
        "ses.default_from": "loja@example.com",
    }


def _through_resend(url: str) -> dict[str, object]:
    """Settings that send e-mail there, with the key in the environment."""
    return {
        "provider": "resend",
        "resend.url": url,
        "resend.default_from": "loja@example.com",
        "delivery.call_limit_ms": 2000,  # the other side is a real one: it may be slow
        "delivery.hold_margin_ms": 200,
    }


def leave_mark(place: Place, mark: str) -> None:
    """Append a line, whole or not at all."""
    line = f"{mark} {time.time_ns() // 1_000_000}\n".encode()
    descriptor = os.open(place.marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _tasks(
    post: PostOffice,
    place: Place,
    lingering: timedelta,
) -> Tasks:
    async def note(mark: str) -> None:
        leave_mark(place, mark)

    def note_in_thread(mark: str) -> None:
        leave_mark(place, mark)

    async def linger(mark: str) -> None:
        await asyncio.sleep(lingering.total_seconds())
        leave_mark(place, mark)

    async def kill_worker(mark: str) -> None:
        if post.deadly is not None:
            post.deadly(post.points.running - 1)
        leave_mark(place, mark)

    return Tasks(
        note=post.task("note")(note),
        note_in_thread=post.task("note_in_thread")(note_in_thread),
        note_once=post.task("note_once", delivery="at_most_once", timeout=CALL_LIMIT)(note),
        linger=post.task("linger")(linger),
        deadly=post.task("deadly")(kill_worker),
        unattended=post.task("unattended")(note),
        fleeting=post.task("fleeting", ttl=timedelta(milliseconds=1))(note),
    )
