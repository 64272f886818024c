"""Measures that are the same on every store: ``environ`` names it, else it is a file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from figures import lines_of, print_table

Peers = Mapping[str, Callable[[], Sequence[Mapping[str, Any]]]]  # by name: the lines of its latency


def latency(
    where: str = "", environ: Mapping[str, str] | None = None, peers: Peers | None = None
) -> None:
    """Waiting time of a message under light load, and of a job with peers: see pace.py."""
    ours = lines_of("ours.latency", environ=environ)
    others = [
        {**each, "name": f"{name}, {each['name']}"}
        for name, measure in (peers or {}).items()
        for each in measure()
    ]
    print(f"\nLatency at 100 a second{where}\n")
    rows = [
        [each["name"], *(f"{each[key]:.1f}" for key in ("p50_ms", "p95_ms", "p99_ms"))]
        for each in [*ours, *others]
    ]
    print_table(["what", "p50 ms", "p95 ms", "p99 ms"], rows)
    if others:
        best = min(each["p50_ms"] for each in others if each["name"].endswith("pick-up"))
        print(f"\nPick-up, p50 / best peer: {ours[0]['p50_ms'] / best:.2f}")


def backlog(waiting: int, where: str = "", environ: Mapping[str, str] | None = None) -> None:
    """Cost of a claim with a large backlog, of few tenants and of many."""
    batches = min(100, waiting // 500)  # so that it stays a backlog
    options = ("--waiting", waiting, "--batches", batches)
    compared, few, many, short = lines_of("ours.backlog", *options, environ=environ)
    spread = "{ratio:.2f} ({ratio_low:.2f}-{ratio_high:.2f})".format_map(compared)
    print(
        f"\nBacklog of {waiting:,}{where}: claims by turns, median and the middle 80 % of the pairs\n"
    )
    rows = [
        ["20 tenants", f"{compared['few_us']:.1f}", "1.00", f"{few['peak_mb']:.0f}"],
        ["10,000 tenants", f"{compared['many_us']:.1f}", spread, f"{many['peak_mb']:.0f}"],
        ["20 tenants, 25,000 waiting", "", "", f"{short['peak_mb']:.0f}"],
    ]
    print_table(["what", "claim us per job", "x 20 tenants", "peak MB of the worker"], rows)
