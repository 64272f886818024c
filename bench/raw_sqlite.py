"""The raw limit: 1 KB rows, WAL, synchronous=FULL, claim 100 by UPDATE ... RETURNING, delete 100 by key.

No tenants, no leases, no events: nothing that claims and finishes jobs on SQLite can be faster.
"""

import argparse
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import measured, report

BATCH = 100
PAYLOAD = "x" * 1000


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE job (id INTEGER PRIMARY KEY, claimed INTEGER NOT NULL DEFAULT 0, payload TEXT)"
    )
    connection.execute("CREATE INDEX waiting ON job (id) WHERE claimed = 0")
    return connection


def _insert(connection: sqlite3.Connection, jobs: int) -> None:
    for first in range(0, jobs, BATCH):
        count = min(BATCH, jobs - first)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO job (payload) VALUES (?)", [(PAYLOAD,)] * count)
        connection.execute("COMMIT")


def _claimed(connection: sqlite3.Connection) -> Iterator[list[tuple[int]]]:
    claim = (
        "UPDATE job SET claimed = 1 WHERE id IN"
        " (SELECT id FROM job WHERE claimed = 0 ORDER BY id LIMIT ?) RETURNING id, payload"
    )
    while batch := connection.execute(claim, (BATCH,)).fetchall():
        yield [(key,) for key, _ in batch]


def _drain(connection: sqlite3.Connection) -> None:
    for keys in _claimed(connection):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM job WHERE id = ?", keys)
        connection.execute("COMMIT")


def main() -> None:
    """Insert and drain ``--jobs`` rows on a new file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as folder:
        connection = _opened(Path(folder) / "raw.db")
        with measured("insert", jobs) as inserted:
            _insert(connection, jobs)
        with measured("drain", jobs) as drained:
            _drain(connection)
        assert connection.execute("SELECT count(*) FROM job").fetchone() == (0,)
        connection.close()
    report(inserted)
    report(drained)


if __name__ == "__main__":
    main()
