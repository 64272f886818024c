"""The reach of one Postgres database: worker processes, tenants, kept messages, and the price of a million mails."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from beside import Store
from figures import Figure, figures_of, lines_of, print_table, say
from servers import WAITS, Postgres, watched

_WAL = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
_BYTES = """
    SELECT sum(pg_table_size(relid))::bigint, sum(pg_indexes_size(relid))::bigint
    FROM pg_stat_user_tables WHERE schemaname = 'carteiro'
"""
_TIME_FUNCTIONS = "ALTER DATABASE bench SET track_functions = 'pl'"
# Milliseconds that claims held the ring: `open_ring` itself waits for its lock.
_RING = """
    SELECT coalesce(sum(CASE funcname WHEN 'claim' THEN total_time ELSE -self_time END), 0)
    FROM pg_stat_user_functions WHERE schemaname = 'carteiro' AND funcname IN ('claim', 'open_ring')
"""
_FEW, _MANY = 20, 10_000
_GB = 1e9
_MILLION = 1e6


class _Setup(NamedTuple):
    workers: int
    tenants: int = _FEW

    def __str__(self) -> str:
        return f"{self.workers} x {self.tenants:,} tenants"


_ONE, _MOST = _Setup(1), _Setup(4, _MANY)
_SETUPS = (
    _ONE,
    _Setup(2),
    _Setup(4),
    _Setup(1, 10),
    _Setup(1, 100),
    _Setup(1, 1000),
    _Setup(1, _MANY),
    _MOST,
)


def measure(server: Postgres, jobs: int, kept: int) -> None:
    """Print all tables."""
    found = _tasks(server, jobs, _SETUPS)
    print(
        f"\nPostgres, scale: the same {jobs:,} tasks, enqueued in lists of 1,000 by one process\n"
    )
    _print_phases(
        [(f"{each.tenants:,} tenants", found[each].accept) for each in _SETUPS if each.workers == 1]
    )
    _mails(server, jobs)
    _growth(server, kept)


def many(server: Postgres, jobs: int) -> None:
    """Print the costs of the smallest and of the largest setup alone."""
    _tasks(server, jobs, (_ONE, _MOST))


# --- one run ----------------------------------------------------------------------------------


@dataclass
class _Phase:
    """Accepting or draining: its figure, what connections waited for meanwhile, and the log that was written."""

    figure: Figure
    waits: dict[str, float]
    wal: int
    ring_ms: float = 0.0


class _Ran(NamedTuple):
    accept: _Phase
    drain: _Phase
    tables: int
    indexes: int


def _ran(server: Postgres, module: str, *options: object) -> _Ran:
    with server.a_database() as store:
        with server.connected() as connection:
            connection.execute(_TIME_FUNCTIONS)
        accept = _phase(server, store, module, "--phase", _FIRST[module], *options)
        drain = _phase(server, store, module, "--phase", "drain", *options)
        with server.connected("bench") as connection:
            [[tables, indexes]] = connection.execute(_BYTES).fetchall()
            [[drain.ring_ms]] = connection.execute(_RING).fetchall()
    return _Ran(accept, drain, tables, indexes)


_FIRST = {"ours.tasks": "enqueue", "ours.emails": "accept"}


def _phase(server: Postgres, store: Store, module: str, *options: object) -> _Phase:
    before = _wal(server)
    with watched(server) as waits:
        [figure] = figures_of(module, *options, environ=store).values()
    return _Phase(figure, waits, _wal(server) - before)


def _wal(server: Postgres) -> int:
    with server.connected() as connection:
        [[written]] = connection.execute(_WAL).fetchall()
    return int(written)


# --- tables -----------------------------------------------------------------------------------


def _tasks(server: Postgres, jobs: int, setups: Sequence[_Setup]) -> dict[_Setup, _Ran]:
    found = {}
    for each in setups:
        say(f"no-op tasks, worker processes {each}")
        options = ("--jobs", jobs, "--workers", each.workers, "--tenants", each.tenants)
        found[each] = _ran(server, "ours.tasks", *options)
    print(f"\nPostgres, scale: {jobs:,} no-op tasks, worker processes x tenants\n")
    _print_phases([(str(each), ran.drain) for each, ran in found.items()])
    ratio = found[_MOST].drain.figure.whole_cpu_us / found[_ONE].drain.figure.whole_cpu_us
    print(
        f"\nCPU per job, {_MOST.workers} worker processes and {_MANY:,} tenants / 1 and {_FEW}: {ratio:.2f}"
    )
    return found


def _mails(server: Postgres, mails: int) -> None:
    found = {}
    for workers in (1, 2, 4):
        say(f"e-mails, {workers} worker processes")
        found[workers] = _ran(server, "ours.emails", "--mails", mails, "--workers", workers)
    print(
        f"\nPostgres, scale: {mails:,} e-mails with all events, {_FEW} tenants, by worker processes\n"
    )
    _print_phases([(str(workers), ran.drain) for workers, ran in found.items()])
    print("\nPostgres, scale: a million e-mails, from the run with one worker process\n")
    _print_million(found[1])


def _print_phases(phases: Sequence[tuple[str, _Phase]]) -> None:
    """Rates and costs; cores: how many each side kept busy."""
    heads = ["what", "per second", "client CPU us each", "server CPU us each", "CPU x first"]
    heads += [
        "client cores",
        "server cores",
        "ring held us each",
        *(f"{kind} wait us each" for kind in WAITS),
        "WAL bytes each",
    ]
    first = phases[0][1].figure
    rows = []
    for name, each in phases:
        figure = each.figure
        rows.append(
            [
                name,
                f"{figure.per_second:,.0f}",
                f"{figure.cpu_us:.1f}",
                f"{figure.server_cpu_us:.1f}",
                f"{figure.whole_cpu_us / first.whole_cpu_us:.2f}",
                f"{figure.cpu_seconds / figure.seconds:.2f}",
                f"{figure.server_cpu_seconds / figure.seconds:.2f}",
                f"{each.ring_ms / figure.count * 1e3:.1f}",
                *(f"{seconds / figure.count * 1e6:.1f}" for seconds in each.waits.values()),
                f"{each.wal / figure.count:,.0f}",
            ]
        )
    print_table(heads, rows)


def _print_million(ran: _Ran) -> None:
    phases = {"accept": ran.accept, "deliver": ran.drain}
    rows = [
        [
            name,
            f"{each.figure.cpu_us:.0f}",
            f"{each.figure.server_cpu_us:.0f}",
            f"{each.wal / each.figure.count * _MILLION / _GB:.2f}",
        ]
        for name, each in phases.items()
    ]
    print_table(["stage", "client core-seconds", "server core-seconds", "WAL GB"], rows)
    mails = ran.accept.figure.count
    tables, indexes = (size / mails * _MILLION / _GB for size in (ran.tables, ran.indexes))
    print(f"\nOn disk afterwards: {tables:.2f} GB of tables, {indexes:.2f} GB of indexes")


def _growth(server: Postgres, kept: int) -> None:
    say(f"a ledger that grows to {kept:,}")
    with server.a_database() as store:
        steps = lines_of("ours.growth", "--messages", kept, environ=store)
    print("\nPostgres, scale: the path with this many e-mails in the ledger\n")
    heads = [
        "kept",
        "accept/s",
        "claim us",
        "declare + settle us",
        "client CPU us",
        "server CPU us",
    ]
    rows = [
        [
            f"{each['kept']:,}",
            f"{1e6 / each['accept_us']:,.0f}",
            *(f"{each[key]:.1f}" for key in ("claim_us", "settle_us", "cpu_us", "server_cpu_us")),
            *(f"{each[key] / _GB:.3f}" for key in ("tables", "indexes")),
            f"{each['wal_each']:,.0f}",
        ]
        for each in steps
    ]
    print_table([*heads, "tables GB", "indexes GB", "WAL bytes each"], rows)
    print("\nPostgres, scale: first page of a tenant's list, p50 ms\n")
    lists = {
        "all": "list_ms",
        "FAILED": "failed_ms",
        "by address": "to_ms",
        "by external id": "external_id_ms",
        "FAILED with a rare tag": "tag_ms",
    }
    rows = [
        [f"{each['kept']:,}", *(f"{each[key]:.1f}" for key in lists.values())] for each in steps
    ]
    print_table(["kept", *lists], rows)
