"""Carteiro and its peers on the same server: the speed of enqueueing and draining, and the cost on both sides."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from figures import Figure, Missing, figures_of, print_table, printed_by, reported, say
from installed import python_of, script_of

Store = Mapping[str, str]  # what names it, in the environment of a measure
_COMPARED = ("Carteiro / it", "CPU, Carteiro / it")


@dataclass
class Ran:
    """One program's figures; ``more`` stands in further columns of its row."""

    name: str
    enqueue: Figure
    drain: Figure
    more: list[str] = field(default_factory=list)


def ran(
    name: str,
    store: AbstractContextManager[Store],
    figures: Callable[[Store], Iterable[Figure]],
) -> Ran | None:
    """Run it on a store of its own; None, and a sentence, where something is missing for it."""
    say(name)
    try:
        with store as opened:
            enqueue, drain = figures(opened)
    except Missing as missing:
        print(f"\n{missing}")
        return None
    return Ran(name, enqueue, drain)


def ours(
    jobs: int, *, workers: int = 1, slots: int | None = None
) -> Callable[[Store], Iterable[Figure]]:
    """No-op tasks of 20 tenants; with this number of slots, else the default of a worker."""
    options = ("--jobs", jobs, "--workers", workers)
    tuned = {} if slots is None else {"CARTEIRO_WORKERS_ASYNC_TASK_SLOTS": str(slots)}
    return lambda store: figures_of("ours.tasks", *options, environ={**store, **tuned}).values()


def ours_mails(mails: int, *, slots: int | None = None) -> Callable[[Store], Iterable[Figure]]:
    """E-mails of 20 tenants through the whole pipeline; with this number of slots, else the default of a worker."""
    tuned = {} if slots is None else {"CARTEIRO_WORKERS_EMAIL_SLOTS": str(slots)}
    options = ("--mails", mails)
    return lambda store: figures_of("ours.emails", *options, environ={**store, **tuned}).values()


def in_python(module: str, jobs: int) -> Callable[[Store], Iterable[Figure]]:
    """A peer in an environment of its own."""
    peer = module.partition("_")[0]
    return lambda store: figures_of(
        f"peers.{module}", "--jobs", jobs, environ=store, python=python_of(peer)
    ).values()


def on_node(peer: str, jobs: int) -> Callable[[Store], Iterable[Figure]]:
    """A peer in JavaScript."""
    return lambda store: map(reported, printed_by([*script_of(peer), jobs], store))


def waits(
    store: AbstractContextManager[Store], *, node: str = "", python: str = "", count: int = 1000
) -> list[dict[str, Any]]:
    """The waiting times of a peer at 100 jobs a second; none, and a sentence, where something is missing for it."""
    say(f"{node or python}: pick-up")
    try:
        if node:
            command: list[object] = [*script_of(node, "latency"), count]
        else:
            command = [python_of(python), "-m", f"peers.{python}_latency", "--count", count]
        with store as opened:
            return [json.loads(line) for line in printed_by(command, opened)]
    except Missing as missing:
        print(f"\n{missing}")
        return []


# --- tables -----------------------------------------------------------------------------------


def print_drains(first: Ran, rest: Sequence[Ran | None], *more: str) -> None:
    """Speed of draining, by product."""
    heads = ["what", "per second", "worker CPU us each", "server CPU us each", *_COMPARED]
    rows = [_row(each.name, each.drain, first.drain) + each.more for each in (first, *rest) if each]
    print_table([*heads, *more], rows)


def print_enqueues(where: str, first: Ran, rest: Sequence[Ran | None]) -> None:
    """Speed of enqueueing, by product."""
    print(f"\n{where}, enqueue in bulk: lists of 1,000\n")
    heads = ["what", "per second", "client CPU us each", "server CPU us each", *_COMPARED]
    rows = [_row(each.name, each.enqueue, first.enqueue) for each in (first, *rest) if each]
    print_table(heads, rows)


def _row(name: str, figure: Figure, ours: Figure) -> list[str]:
    rate, cpu = ours.per_second / figure.per_second, ours.whole_cpu_us / figure.whole_cpu_us
    return [*cells(replace(figure, name=name)), f"{rate:.2f}x", f"{cpu:.2f}x"]


def cells(figure: Figure) -> list[str]:
    """Name, rate, and CPU of both sides."""
    return [
        figure.name,
        f"{figure.per_second:,.0f}",
        f"{figure.cpu_us:,.1f}",
        f"{figure.server_cpu_us:,.1f}",
    ]
