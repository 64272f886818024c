"""A commit never covers a record that has not ended, and forgets no end that was noted."""

import random

from hypothesis import given
from hypothesis import strategies as st

from carteiro.tickets.consume.notes import MOST_CHARACTERS, Noted, read_notes
from carteiro.tickets.consume.offsets import Offsets


def committed(offsets: Offsets) -> tuple[int, Noted | None]:
    """Return the commit of now, with its notes read again."""
    commit = offsets.commit()
    assert commit is not None
    return commit[0], read_notes(commit[1])


def taken(*places: int, noted: Noted | None = None) -> Offsets:
    """A partition of which these have come."""
    offsets = Offsets(noted)
    offsets.take(places)
    return offsets


def test_before_any_record_there_is_nothing_to_commit() -> None:
    """Not even where it begins is known."""
    offsets = Offsets()
    assert offsets.commit() is None
    assert (offsets.committable, offsets.span) == (None, 0)


def test_the_lowest_open_one_is_committed_whatever_ended_after_it() -> None:
    """Never in the order in which they end."""
    offsets = taken(5, 6, 7)
    offsets.finish([7])
    offsets.finish([6])
    assert committed(offsets) == (5, Noted(5, 8, {5: 0}))
    offsets.finish([5])
    assert offsets.commit() == (8, "")


def test_a_gap_in_the_log_holds_up_nothing() -> None:
    """Compaction and transactions leave gaps."""
    offsets = taken(5, 9)
    offsets.finish([5])
    assert offsets.committable == 9


def test_failures_are_noted() -> None:
    """The counter may be down when the next owner asks."""
    offsets = taken(5, 6)
    offsets.failed(6, 2)
    offsets.finish([5])
    assert committed(offsets) == (6, Noted(6, 7, {6: 2}))


def test_next_owner_runs_only_unfinished_tickets_and_knows_their_failures() -> None:
    """And what came after the notes is new."""
    offsets = Offsets(Noted(5, 9, {5: 1, 7: 0}))
    assert offsets.take(range(5, 11)) == {5: 1, 7: 0, 9: 0, 10: 0}


def test_notes_on_unread_records_are_noted_again() -> None:
    """A second death must not cost what the first one left."""
    offsets = taken(5, noted=Noted(5, 200, {5: 1, 150: 2}))
    assert committed(offsets) == (5, Noted(5, 200, {5: 1, 150: 2}))
    offsets.finish([5])
    assert committed(offsets) == (6, Noted(6, 200, {150: 2}))


def test_a_record_that_comes_twice_is_taken_once() -> None:
    """A client may read again what it has read."""
    offsets = taken(5, 6)
    assert offsets.take([5, 6]) == {}
    assert offsets.span == 2


def test_a_few_that_hold_up_many_are_seen() -> None:
    """Two of a hundred."""
    offsets = taken(*range(100))
    for each in range(1, 99):
        offsets.finish([each])
    assert offsets.is_mostly_done
    assert not taken(*range(100)).is_mostly_done


def test_notes_that_grow_too_long_are_seen() -> None:
    """Then no more records are taken."""
    offsets = taken(*range(60_000))
    for each in random.Random(1).sample(range(60_000), 30_000):
        offsets.finish([each])
    offsets.commit()
    assert offsets.is_noted_full
    assert len((offsets.commit() or (0, ""))[1]) <= MOST_CHARACTERS


@given(st.permutations(range(12)), st.integers(0, 12), st.integers(0, 12))
def test_however_records_end_and_workers_die_each_one_ends_exactly_once(
    order: list[int], first: int, second: int
) -> None:
    """Three owners, each killed after a commit."""
    ended: list[int] = []
    noted: Noted | None = None
    start = 0
    for upto in (first, second, 12):
        offsets = Offsets(noted)
        opened = offsets.take(range(start, 12)) if start < 12 else {}
        for each in [each for each in order if each in opened][:upto]:
            offsets.finish([each])
            ended.append(each)
        if (commit := offsets.commit()) is not None:
            start, noted = commit[0], read_notes(commit[1])
    assert sorted(ended) == list(range(12))
