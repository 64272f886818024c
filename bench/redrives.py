"""The figures of redrives: a plan of 100,000 dead letters takes at most 2 s, on every store."""

from collections.abc import Mapping

from figures import Missing, lines_of, print_table
from servers import postgres


def measure(letters: int = 100_000) -> None:
    """Print the table."""
    print(f"\nRedrives, {letters:,} dead letters of 1,000 tenants\n")
    rows = _rows("SQLite", letters, {})
    try:
        with postgres() as server, server.a_database() as environ:
            rows += _rows("Postgres", letters, environ)
    except Missing as missing:
        print(missing)
    print_table(["what", "letters", "ms", "CPU ms of the process"], rows)


def _rows(store: str, letters: int, environ: Mapping[str, str]) -> list[list[str]]:
    return [
        [
            f"{store}, {each['name']}",
            f"{each['total']:,}",
            f"{each['ms']:.0f}",
            f"{each['cpu_ms']:.0f}",
        ]
        for each in lines_of("ours.redrives", "--letters", letters, environ=environ)
    ]


if __name__ == "__main__":
    measure()
