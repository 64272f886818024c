"""Counts that do not depend on the machine, of all stores and of tickets, next to their limits in `budget.toml`."""

import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from figures import HERE, Missing, print_table, printed_by, say
from servers import postgres, redis

_STORES = ("sqlite", "postgres", "redis+sqlite", "redis+postgres")
_KINDS = ("task", "email")
_EACH = 100  # messages that the limits are for


def measure() -> None:
    """Print Python calls and statements for one message, and how near the limit they are."""
    limits = tomllib.loads((HERE / "budget.toml").read_text("utf-8"))
    rows = []
    for store in _STORES:
        for kind in _KINDS:
            try:
                found = _counted(store, kind)
            except Missing as missing:
                print(f"\n{missing}")
                break
            rows.append([f"{kind}, {store}", *_cells(found, limits[store][kind])])
    print("\nA message: Python calls, statements and bytes of log, accept and work\n")
    print_table(["what", "calls", "x limit", "statements", "rows", "log bytes"], rows)
    found = json.loads(printed_by([sys.executable, "ticket_budget.py"])[0])
    print("\nA ticket: Python calls\n")
    rows = [
        [name, f"{calls / _EACH:.1f}", f"{calls / limits['tickets'][key]:.2f}"]
        for name, key in (("none failing", "calls"), ("1 % always failing", "calls_failing"))
        for calls in (found[key],)
    ]
    print_table(["what", "calls", "x limit"], rows)


def _counted(store: str, kind: str) -> dict[str, dict[str, float]]:
    say(f"calls: {kind}, {store}")
    with _addresses(store) as addresses:
        command = [sys.executable, "budget.py", "--kind", kind, *addresses]
        return {**json.loads(printed_by(command)[0])}


@contextmanager
def _addresses(store: str) -> Iterator[list[str]]:
    """Options of `budget.py`: a new store, and an empty queue."""
    queue, _, ledger = store.rpartition("+")
    if queue:
        with redis() as jobs, jobs.emptied() as environ, _addresses(ledger) as rest:
            yield [*rest, "--queue", environ["BENCH_QUEUE"]]
    elif ledger == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield ["--store", f"sqlite:///{folder}/carteiro.db"]
    else:
        with postgres() as server, server.a_database() as environ:
            yield ["--store", environ["BENCH_STORE"]]


def _cells(
    found: Mapping[str, Mapping[str, float]], limits: Mapping[str, Mapping[str, float]]
) -> list[str]:
    spent, allowed = (
        {count: sum(each[count] for each in phases.values()) for count in phases["work"]}
        for phases in (found, limits)
    )
    log = f"{spent['log_bytes'] / _EACH:,.0f}"
    others = (f"{spent[count] / _EACH:,.2f}" for count in ("statements", "rows"))
    return [
        f"{spent['calls'] / _EACH:.1f}",
        f"{spent['calls'] / allowed['calls']:.2f}",
        *others,
        log,
    ]
