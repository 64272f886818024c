"""The process that is killed: a worker, with or without traffic of its own, that carries a plan out.

It prints JSON lines to stdout: each accepted message (after the answer) and each reached point (before it dies or
stops there).
"""

import asyncio
import json
import os
import signal
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from random import Random

from carteiro.errors import StoreUnavailable
from carteiro.model import FINISHED, MessageId
from carteiro.observability import log
from end_to_end.crash.places import Place
from end_to_end.crash.points import Plan, Points, points_inside
from end_to_end.crash.post_office import LEASE, PostOffice, Tasks, leave_mark, opened
from end_to_end.crash.postgres_points import points_inside_postgres
from end_to_end.crash.traffic import play
from support.forks import become

DEADLY_EXIT = 13
DEATH = "death"  # the mark that a deadly message leaves
_UNATTENDED = frozenset({"unattended", "fleeting"})
_TASKS = frozenset(field.name for field in fields(Tasks))
_POLL_S = 0.01
_QUIET_POLLS = (
    20  # nothing was unfinished this many times in a row: then late results have been recorded, too
)


@dataclass(frozen=True)
class Orders:
    """The task of a child."""

    place: Place
    plan: Plan | None = None
    seed: int | None = None  # of the traffic that it plays; None: it only works
    until_idle: bool = False
    emails_only: bool = False
    blocked: str = ""
    lingering_s: float = 0.0
    grace_s: float = 10.0
    command_timeout_s: float = 30.0
    lease_s: float = LEASE.total_seconds()
    as_usual: bool = False


def carry_out(orders: Orders, environment: Mapping[str, str], said: Connection) -> None:
    """Carry the orders out, in a process that was forked for them; output goes to the connection."""
    become(environment, out=said.fileno(), log=str(orders.place.log))
    warnings.simplefilter("error")
    log.configure("warn")
    points = Points(orders.plan, say=lambda point: _say(reached=point), blocked=orders.blocked)
    with ExitStack() as stack:
        if orders.plan is not None:
            stack.enter_context(points_inside(points))
            stack.enter_context(points_inside_postgres(points))
            if orders.place.queue:  # a child without one need not wait for its driver
                between = import_module("end_to_end.crash.redis_points")
                stack.enter_context(between.points_inside_redis(points))
        asyncio.run(_work(orders, points))


async def _work(orders: Orders, points: Points) -> None:
    async with opened(
        orders.place,
        points,
        grace=timedelta(seconds=orders.grace_s),
        lingering=timedelta(seconds=orders.lingering_s),
        command_timeout=timedelta(seconds=orders.command_timeout_s),
        lease=timedelta(seconds=orders.lease_s),
        redrives_itself=orders.seed is not None and not orders.as_usual,
        as_usual=orders.as_usual,
        deadly=partial(_die, orders.place),
        unattended=_TASKS if orders.emails_only else _UNATTENDED,
    ) as post:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, post.stop)
        working = asyncio.create_task(post.run_worker())
        _say(started=os.getpid())
        if orders.seed is not None:
            with _stopped_too_long(orders.plan):
                await play(post, Random(orders.seed), _heard)
            post.stop()
        elif orders.until_idle:
            await _idle(post)
            post.stop()
        await working


def _stopped_too_long(plan: Plan | None) -> AbstractContextManager[None]:
    """While a process is stopped, a server may close its connections: then it sends no more."""
    is_stopped = plan is not None and plan.action == "stop"
    return suppress(StoreUnavailable) if is_stopped else nullcontext()


async def _idle(post: PostOffice) -> None:
    quiet = 0
    while quiet < _QUIET_POLLS:
        states = await post.backend.reading.states()
        is_quiet = FINISHED.issuperset(states) and not await post.backend.redrives.due()
        quiet = quiet + 1 if is_quiet else 0
        await asyncio.sleep(_POLL_S)


def _die(place: Place, others: int) -> None:
    """Kill the whole process; the mark has the number of deliveries that die with it."""
    leave_mark(place, f"{DEATH}:{others}")
    os._exit(DEADLY_EXIT)


def _heard(ids: Sequence[MessageId]) -> None:
    _say(accepted=list(ids))


def _say(**told: object) -> None:
    """Write a line at once: a buffer dies with the process."""
    os.write(1, json.dumps(told).encode() + b"\n")
