"""The ticket lane: parallel keys, no-ops compared with a bare consumer, and the cost of failing tickets for others."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from figures import Figure, figures_of, in_pairs, print_table, say
from ours.tickets import LONGEST_MS

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.kafka_server import a_kafka
from support.redis_server import a_redis

# Seconds that Parallel Consumer publishes for 10,000 messages of 0-5 ms, one partition, at most 100 at once.
_PARALLEL_CONSUMER = {1: 26.7, 2: 13.6, 5: 5.9, 10: 3.3, 20: 2.24, 1000: 2.06}
_PUBLISHED_FOR = 10_000
_AT_ONCE = 100
_FAILING = 0.01


def _keys(environ: dict[str, str]) -> None:
    rows = []
    for keys, published in _PARALLEL_CONSUMER.items():
        say(f"tickets of 0-{LONGEST_MS:g} ms, {keys:,} keys")
        arguments = ("--tickets", _PUBLISHED_FOR, "--keys", keys, "--sleeps")
        figure = figures_of("ours.tickets", *arguments, environ=environ)["tickets"]
        ideal = _PUBLISHED_FOR * LONGEST_MS / 2000 / min(keys, _AT_ONCE)
        rows.append(
            [
                f"{keys:,}",
                f"{figure.seconds:.2f}",
                f"{ideal:.2f}",
                f"{published:.2f}",
                f"{published / figure.seconds:.1f}x",
                f"{figure.cpu_us:.1f}",
            ]
        )
    print(
        f"\n{_PUBLISHED_FOR:,} tickets of 0-{LONGEST_MS:g} ms, one partition, {_AT_ONCE} at once, "
        "from the first record to the last commit\n"
    )
    heads = ["keys", "seconds", "ideal", "Parallel Consumer (published)", "faster", "CPU us each"]
    print_table(heads, rows)


def _no_op(environ: dict[str, str], tickets: int, pairs: int) -> None:
    last: dict[str, Figure] = {}

    def per_second(module: str, name: str) -> float:
        last[name] = figures_of(module, "--tickets", tickets, environ=environ)[name]
        return last[name].per_second

    compared = in_pairs(
        "no-op tickets / bare consumer",
        lambda: per_second("ours.tickets", "tickets"),
        lambda: per_second("peers.bare_kafka", "bare"),
        rounds=pairs,
    )
    print(f"\nNo-op tickets per second / batches + JSON + one awaited no-op: {compared}")
    print(
        f"CPU us a ticket, last pair: {last['tickets'].cpu_us:.1f} / {last['bare'].cpu_us:.1f}; "
        f"{last['tickets'].per_second:,.0f}/s / {last['bare'].per_second:,.0f}/s"
    )


def _failing(environ: dict[str, str], tickets: int, pairs: int) -> None:
    def healthy_per_second(share: float) -> float:
        options = ("--tickets", tickets, "--failing", share)
        return next(iter(figures_of("ours.tickets", *options, environ=environ).values())).per_second

    compared = in_pairs(
        "1 % always failing / none failing",
        lambda: healthy_per_second(_FAILING),
        lambda: healthy_per_second(0.0),
        rounds=pairs,
    )
    print(f"\nHealthy tickets per second, {_FAILING:.0%} always failing / none: {compared}")


@contextmanager
def _servers() -> Iterator[dict[str, str]]:
    with ExitStack() as running:
        kafka = running.enter_context(a_kafka())
        redis = running.enter_context(a_redis())
        yield {
            "BENCH_KAFKA": kafka.bootstrap_servers,
            "BENCH_REDIS": f"redis://127.0.0.1:{redis.port}/0",
        }


def measure(tickets: int, pairs: int) -> None:
    """Print all three."""
    with _servers() as environ:
        _keys(environ)
        _no_op(environ, tickets, pairs)
        _failing(environ, tickets, pairs)


def main() -> None:
    """Measure, as much as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    measure(asked.tickets, asked.pairs)


if __name__ == "__main__":
    main()
