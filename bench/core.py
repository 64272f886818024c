"""The figures of Carteiro on SQLite: each beside a peer that does less, from the same run.

make bench: everything, about twelve minutes;
make bench ARGS="--jobs 20000 --pairs 3 --waiting 100000": a quick look;
make bench ARGS="--only failing": one part.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import http_api
import mime
import smtp
from figures import HERE, Figure, figures_of, in_pairs, print_table, row, say

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


def _latency() -> None:
    print("\nLatency at 100 a second\n")
    rows = [
        [each["name"], *(f"{each[key]:.1f}" for key in ("p50_ms", "p95_ms", "p99_ms"))]
        for each in _lines("ours.latency")
    ]
    print_table(["what", "p50 ms", "p95 ms", "p99 ms"], rows)


def _backlog(waiting: int) -> None:
    compared, few, many, short = _lines("ours.backlog", "--waiting", waiting)
    spread = "{ratio:.2f} ({ratio_low:.2f}-{ratio_high:.2f})".format_map(compared)
    print(f"\nBacklog of {waiting:,}: claims by turns, median and the middle 80 % of the pairs\n")
    rows = [
        ["20 tenants", f"{compared['few_us']:.1f}", "1.00", f"{few['peak_mb']:.0f}"],
        ["10,000 tenants", f"{compared['many_us']:.1f}", spread, f"{many['peak_mb']:.0f}"],
        ["20 tenants, 25,000 waiting", "", "", f"{short['peak_mb']:.0f}"],
    ]
    print_table(["what", "claim us per job", "x 20 tenants", "peak MB of the worker"], rows)


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
        for each in _lines("ours.lists", "--messages", messages)
    ]
    print_table(["what", "p50 ms", "p95 ms", "most ms"], rows)


def _lines(module: str, *arguments: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    ran = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def main() -> None:
    """Run all measures and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=7)
    parts: dict[str, Callable[[], None]] = {
        "throughput": lambda: _throughput(asked.jobs),
        "latency": _latency,
        "failing": lambda: _failing_once(max(1000, asked.jobs // 5), asked.pairs),
        "backlog": lambda: _backlog(asked.waiting),
        "lists": lambda: _lists(asked.waiting),
        "http": lambda: http_api.measure(max(1000, asked.jobs // 10), asked.pairs),
        "mime": mime.measure,
        "smtp": lambda: smtp.measure(max(1000, asked.jobs // 5), asked.pairs),
    }
    parser.add_argument("--only", choices=parts, action="append", help="measure this alone")
    asked = parser.parse_args()
    for name in asked.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
