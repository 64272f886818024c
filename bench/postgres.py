"""The figures on Postgres: a server of our own, with fsync, and on the same server what people would pick instead.

Each measure has a new database. Fairness is on, with 20 tenants; the peers know none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import any_store
import beside
import scale
from beside import Ran, Store
from figures import Figure, Missing, lines_of, print_table
from ours.backlog import LIST
from servers import WAITS, Postgres, postgres, watched

_SIZES = """
    SELECT relname, pg_table_size(relid) / 1024, pg_indexes_size(relid) / 1024, n_dead_tup
    FROM pg_stat_user_tables
    WHERE schemaname = 'carteiro'
    ORDER BY pg_total_relation_size(relid) DESC
"""
_WORTH_TELLING_KB = 256


class Sizes(NamedTuple):
    """Jobs of a drain, jobs of a backlog, and messages kept in a growing ledger."""

    jobs: int
    waiting: int
    kept: int


def measure(names: Iterable[str], sizes: Sizes) -> None:
    """Start a server and print the tables of these parts."""
    try:
        with postgres() as server:
            for name in names:
                PARTS[name](server, sizes)
    except Missing as missing:
        print(f"\n{missing}")


# --- throughput -------------------------------------------------------------------------------


def _drains(server: Postgres, sizes: Sizes) -> None:
    """No-op tasks through one worker process, through two, and through each peer."""
    jobs = sizes.jobs

    def ran(name: str, figures: Callable[[Store], Iterable[Figure]]) -> Ran | None:
        with watched(server) as waits:
            each = beside.ran(name, server.a_database(), figures)
        if each:
            each.more = [f"{waits[kind] / each.drain.count * 1e6:.1f}" for kind in waits]
        return each

    few = max(1000, jobs // 10)  # of one that would take minutes for all of them
    one = ran("Carteiro, 1 worker process", beside.ours(jobs))
    two = ran("Carteiro, 2 worker processes", beside.ours(jobs, workers=2))
    tuned = ran("Carteiro, 1 worker process, 500 slots", beside.ours(jobs, slots=500))
    assert one
    assert two
    peers = [
        ran("PgQueuer", beside.in_python("pgqueuer_postgres", jobs)),
        ran(f"Procrastinate, {few:,} jobs", beside.in_python("procrastinate_postgres", few)),
        ran("graphile-worker, tuned", beside.on_node("graphile", jobs)),
    ]
    print(f"\nPostgres, drain of {jobs:,} no-op tasks\n")
    waits = (f"{kind} wait us each" for kind in WAITS)
    beside.print_drains(one, [two, tuned, *peers], *waits)
    _print_second_worker(one.drain, two.drain)
    beside.print_enqueues("Postgres", one, peers)


def _print_second_worker(one: Figure, two: Figure) -> None:
    worker, server = two.cpu_us / one.cpu_us, two.server_cpu_us / one.server_cpu_us
    both = two.whole_cpu_us / one.whole_cpu_us
    print(
        f"\nCPU per job, 2 worker processes / 1: {both:.2f} (workers {worker:.2f}, server {server:.2f})"
    )


def _mails(server: Postgres, sizes: Sizes) -> None:
    """The whole e-mail pipeline, and a peer that has no e-mails: its no-op jobs."""
    jobs = sizes.jobs
    ours = beside.ran("Carteiro", server.a_database(), beside.ours_mails(jobs))
    assert ours
    tuned = beside.ran(
        "Carteiro, 500 slots", server.a_database(), beside.ours_mails(jobs, slots=500)
    )
    bare = beside.in_python("pgqueuer_postgres", jobs)
    peer = beside.ran("PgQueuer, no-op jobs", server.a_database(), bare)
    print(f"\nPostgres, {jobs:,} e-mails with all events, one worker process\n")
    beside.print_drains(ours, [tuned, peer])
    beside.print_enqueues("Postgres, e-mails", ours, [peer])


# --- waiting ----------------------------------------------------------------------------------


def _latency(server: Postgres, _: Sizes) -> None:
    peers = {
        "PgQueuer": lambda: beside.waits(server.a_database(), python="pgqueuer"),
        "graphile-worker": lambda: beside.waits(server.a_database(), node="graphile"),
    }
    with server.databases("ours"):
        any_store.latency(", Postgres", server.environ("ours"), peers)


def _backlog(server: Postgres, sizes: Sizes) -> None:
    with server.databases("few", "many", "short"):
        any_store.backlog(sizes.waiting, ", Postgres", server.environ("{name}"))


def _after_load(server: Postgres, sizes: Sizes) -> None:
    waiting = sizes.waiting
    with server.a_database() as store:
        shares = lines_of("ours.after_load", "--jobs", waiting, environ=store)
    rates = {each["name"]: each["per_second"] for each in shares}
    middle = next(rate for name, rate in rates.items() if name.startswith("middle"))
    print(f"\nPostgres, drain of {waiting:,} no-op tasks right after they were loaded\n")
    rows = [[name, f"{rate:,.0f}", f"{rate / middle:.2f}x"] for name, rate in rates.items()]
    print_table(["what", "per second", "x middle"], rows)


# --- growth -----------------------------------------------------------------------------------


def _growth(server: Postgres, sizes: Sizes) -> None:
    _passed(server, sizes.waiting, is_held=False)
    _passed(server, sizes.waiting, is_held=True)


def _passed(server: Postgres, jobs: int, *, is_held: bool) -> None:
    """Let jobs pass through; what the tables measure before and after."""
    with server.a_database() as store:
        lines_of("ours.passing", "--jobs", LIST, environ=store)
        before = _sizes(server)
        with _held_open(server) if is_held else nullcontext():
            parts = lines_of("ours.passing", "--jobs", jobs, environ=store)
            after = _sizes(server)
    print(
        f"\nPostgres, {jobs:,} jobs passed through"
        f"{', another transaction open all the time' if is_held else ''}; before: {LIST:,}\n"
    )
    heads = [
        "table",
        "kB before",
        "after",
        "indexes kB before",
        "after",
        "dead rows before",
        "after",
    ]
    rows = [
        [name, *(f"{each:,}" for pair in zip(before[name], sizes, strict=True) for each in pair)]
        for name, sizes in after.items()
        if sum(sizes[:2]) >= _WORTH_TELLING_KB
    ]
    print_table(heads, rows)
    _print_passing(parts)


def _print_passing(parts: Sequence[Mapping[str, Any]]) -> None:
    print("\nMedian us per job; flat when the last tenth is as the middle\n")
    columns = [
        (key, against) for key in ("claim_us", "both_us") for against in (None, parts[0], parts[1])
    ]
    rows = [
        [
            each["name"],
            *(
                f"{each[key] / against[key]:.2f}x" if against else f"{each[key]:.1f}"
                for key, against in columns
            ),
        ]
        for each in parts
    ]
    compared = ["x first", "x middle"]
    print_table(["jobs", "claim us", *compared, "claim + settle us", *compared], rows)


def _sizes(server: Postgres) -> dict[str, tuple[int, int, int]]:
    with server.connected("bench") as connection:
        return {
            name: (table, indexes, dead)
            for name, table, indexes, dead in connection.execute(_SIZES)
        }


@contextmanager
def _held_open(server: Postgres) -> Iterator[None]:
    """Somebody's transaction that has begun to write and to read, and goes on and on."""
    with server.connected("bench") as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT pg_current_xact_id()")
        yield


PARTS: dict[str, Callable[[Postgres, Sizes], None]] = {
    "drain": _drains,
    "mails": _mails,
    "latency": _latency,
    "backlog": _backlog,
    "load": _after_load,
    "growth": _growth,
    "many": lambda server, sizes: scale.many(server, sizes.jobs),
    "scale": lambda server, sizes: scale.measure(server, sizes.jobs, sizes.kept),
}
