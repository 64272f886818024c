"""The figures of Carteiro: each compared with a peer that does less, from the same run.

make bench: everything on SQLite, then on Postgres and on Redis, about an hour;
make bench ARGS="--jobs 20000 --pairs 3 --waiting 100000": a quick look;
make bench ARGS="--only failing": one part;
make bench ARGS="--only postgres.drain --only postgres.mails": of those on Postgres, these two;
make bench ARGS="--only postgres.scale --kept 10000000": the reach of one database (45 GB of disk).
"""

import argparse
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext

import any_store
import calls
import chain
import console
import http_api
import mime
import operations
import postgres
import redis_queue
import resend
import results
import ses
import smtp
import suspects
import tickets
import verdicts
from figures import Figure, figures_of, in_pairs, lines_of, print_table, row, say

_FAILING = 30  # per cent


def _throughput(jobs: int) -> None:
    say(f"throughput, {jobs:,} jobs each, one at a time")
    huey = figures_of("peers.huey_sqlite", "--jobs", jobs)
    raw = figures_of("raw_sqlite", "--jobs", jobs)
    tasks = figures_of("ours.tasks", "--jobs", jobs)
    mails = figures_of("ours.emails", "--mails", jobs)
    raw_drain = raw["drain"]
    print("\nDrain: one worker process; fairness on, 20 tenants, synchronous=FULL\n")
    heads = ["what", "per second", "CPU us each", "x Huey", "x raw loop"]
    drains = [
        row(_named(tasks["task drain"], "no-op task"), huey["drain"], raw_drain),
        row(_named(mails["mail drain"], "whole e-mail pipeline"), huey["drain"], raw_drain),
        row(_named(huey["drain"], "Huey no-op (no ack)"), huey["drain"], raw_drain),
        row(_named(raw_drain, "raw claim 100 + delete 100"), huey["drain"], raw_drain),
    ]
    print_table(heads, drains)
    print("\nAccept: lists of 1,000\n")
    accepts = [
        row(_named(mails["mail accept"], "send_many, e-mail"), huey["enqueue"]),
        row(_named(tasks["task enqueue"], "send_many, task"), huey["enqueue"]),
        row(_named(huey["enqueue"], "Huey enqueue"), huey["enqueue"]),
    ]
    print_table(heads[:4], accepts)


def _named(figure: Figure, name: str) -> Figure:
    return Figure(name, figure.count, figure.seconds, figure.cpu_seconds)


def _failing_once(mails: int, pairs: int) -> None:
    def attempts_per_second(*options: object) -> float:
        return figures_of("ours.emails", "--mails", mails, *options)["mail drain"].per_second

    compared = in_pairs(
        "failing once / none failing",
        lambda: attempts_per_second("--failing-once", _FAILING),
        attempts_per_second,
        rounds=pairs,
    )
    print(
        f"\nAttempts per second with {_FAILING} % failing once / none: {compared} (median, spread)"
    )


def _lists(messages: int) -> None:
    print(f"\nLists of e-mails, {messages:,} messages, pages of 25\n")
    rows = [
        [each["name"], *(f"{each[key]:.1f}" for key in ("p50_ms", "p95_ms", "most_ms"))]
        for each in lines_of("ours.lists", "--messages", messages)
    ]
    print_table(["what", "p50 ms", "p95 ms", "most ms"], rows)


def _sizes(asked: argparse.Namespace) -> postgres.Sizes:
    return postgres.Sizes(asked.jobs, asked.waiting, asked.kept)


def main() -> None:
    """Run all measures and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="a multiple of 1,000")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="a multiple of 5,000")
    parser.add_argument("--kept", type=int, default=1_000_000, help="a multiple of 1,000")
    parser.add_argument("--pairs", type=int, default=7)
    parts: dict[str, Callable[[], None]] = {
        "throughput": lambda: _throughput(asked.jobs),
        "latency": lambda: any_store.latency(
            ", SQLite", peers={"Huey": lambda: lines_of("peers.huey_latency")}
        ),
        "failing": lambda: _failing_once(max(1000, asked.jobs // 5), asked.pairs),
        "backlog": lambda: any_store.backlog(asked.waiting),
        "lists": lambda: _lists(asked.waiting),
        "http": lambda: http_api.measure(max(1000, asked.jobs // 10), asked.pairs),
        "mime": mime.measure,
        "calls": calls.measure,
        "classify": verdicts.measure,
        "smtp": lambda: smtp.measure(max(1000, asked.jobs // 5), asked.pairs),
        "resend": lambda: resend.measure(max(1000, asked.jobs // 20), asked.pairs),
        "chain": lambda: chain.measure(max(1000, asked.jobs // 5), asked.pairs),
        "ses": lambda: ses.measure(max(1000, asked.jobs // 20), asked.pairs),
        "suspects": lambda: suspects.measure(2000, asked.pairs),
        "operations": lambda: operations.measure(max(1000, asked.jobs // 10), asked.jobs),
        "console": lambda: console.measure(asked.kept, asked.jobs),
        "tickets": lambda: tickets.measure(asked.jobs, asked.pairs),
        "postgres": lambda: postgres.measure(postgres.PARTS, _sizes(asked)),
        "redis": lambda: redis_queue.measure(redis_queue.PARTS, asked.jobs),
    }
    pieces = [f"postgres.{name}" for name in postgres.PARTS]
    pieces += [f"redis.{name}" for name in redis_queue.PARTS]
    parser.add_argument(
        "--only", choices=[*parts, *pieces], action="append", help="measure this alone"
    )
    parser.add_argument("--save", action="store_true", help="keep the tables in bench/results")
    asked = parser.parse_args()
    # As Ctrl-C does: the servers that we started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with results.kept(sys.argv[1:]) if asked.save else nullcontext():
        for wanted in asked.only or parts:
            server, _, name = wanted.partition(".")
            if not name:
                parts[wanted]()
            elif server == "postgres":
                postgres.measure([name], _sizes(asked))
            else:
                redis_queue.measure([name], asked.jobs)


if __name__ == "__main__":
    main()
