"""The picture of the README shows the rates of the kept tables."""

from picture import drawn, tables

KEPT = """# 2026-01-01 10:00 UTC: --only redis.mails

- 2 cores

Redis queue, Postgres ledger: 4,000 e-mails with all events, one worker process

|                      what | per second | worker CPU us each |
|--------------------------:|-----------:|-------------------:|
|                  Carteiro |      6,540 |              162.5 |
| BullMQ on Node, 1,000 mails |      1,183 |              930.0 |

Postgres, drain of 1,000 no-op tasks

|     what | per second |
|---------:|-----------:|
| PgQueuer |      7,000 |
"""


def test_tables_are_read_with_their_titles() -> None:
    """A number in a title does not make it another table."""
    [mails, tasks] = tables(KEPT)

    assert mails[1] == {"Carteiro": 6540.0, "BullMQ on Node, 1,000 mails": 1183.0}
    assert tasks == ("Postgres, drain of {} no-op tasks", {"PgQueuer": 7000.0})


def test_newer_run_counts_whatever_its_size() -> None:
    """A drain of 1,000 jobs and one of 2,000 are the same table."""
    older = KEPT + "| Carteiro, 1 worker process | 20,000 |\n"
    newer = older.replace("1,000 no-op", "2,000 no-op").replace("20,000", "21,000")

    picture = drawn(dict(tables(older)) | dict(tables(newer)))

    assert "21,000" in picture
    assert "20,000" not in picture


def test_group_without_a_figure_of_ours_is_left_out() -> None:
    """A peer alone compares nothing."""
    picture = drawn(dict(tables(KEPT)))

    assert "6,540" in picture
    assert "1,183" in picture
    assert "PgQueuer" not in picture
