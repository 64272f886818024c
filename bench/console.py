"""The console: milliseconds of its pages with many messages, tenants and dead letters, and the CPU time of open pages.

Goals: 100 ms at the 95th percentile with an indexed filter, and 5 % of a core for 200 open pages.
"""

from collections.abc import Mapping

from figures import Missing, lines_of, print_table
from servers import postgres

_TENANTS_PART = 100  # messages of each tenant


def measure(messages: int = 1_000_000, letters: int = 100_000) -> None:
    """Print both tables."""
    tenants = max(20, messages // _TENANTS_PART)
    print(
        f"\nConsole, {messages:,} messages, {tenants:,} tenants, {letters:,} dead letters: pages\n"
    )
    sizes = ("--messages", messages, "--tenants", tenants, "--letters", letters)
    told = _lines("SQLite", sizes, {})
    try:
        with postgres() as server, server.a_database() as environ:
            told += _lines("Postgres", sizes, environ)
    except Missing as missing:
        print(missing)
    rows = [
        [name, *(f"{each[key]:.1f}" for key in ("p50_ms", "p95_ms", "most_ms"))]
        for name, each in told
        if "p50_ms" in each
    ]
    print_table(["page", "p50 ms", "p95 ms", "most ms"], rows)
    print("\nConsole, open pages that are fed live\n")
    rows = [
        [name, str(each["viewers"]), f"{each['share']:.1%}"]
        for name, each in told
        if "share" in each
    ]
    print_table(["what", "pages", "of a core"], rows)


def _lines(
    store: str, sizes: tuple[object, ...], environ: Mapping[str, str]
) -> list[tuple[str, dict[str, float]]]:
    told = lines_of("ours.console", *sizes, environ=environ)
    return [(f"{store}, {each['name']}", each) for each in told]


if __name__ == "__main__":
    measure()
