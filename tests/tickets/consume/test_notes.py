"""Notes of a commit say what is open, fit into what a broker keeps, and are never believed when broken."""

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.tickets.consume.notes import MOST_CHARACTERS, Noted, note_down, read_notes

SPANS = st.integers(1, 400)


@st.composite
def notes(draw: st.DrawFn) -> Noted:
    """Any notes."""
    start = draw(st.integers(0, 2**62))
    span = draw(SPANS)
    opened = draw(st.sets(st.integers(0, span - 1)))
    return Noted(
        start, start + span, {start + each: draw(st.integers(0, 9)) for each in sorted(opened)}
    )


@given(notes())
def test_notes_survive_writing_and_reading(noted: Noted) -> None:
    """Whatever is open, and however often it failed."""
    assert read_notes(note_down(noted)[0]) == noted


def test_one_open_record_before_many_done_ones_is_a_short_note() -> None:
    """Fifty thousand done ones cost nothing."""
    assert len(note_down(Noted(7, 50_000, {7: 2}))[0]) < 30


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.99])
def test_notes_always_fit_and_say_nothing_wrong(share: float) -> None:
    """Records are left out from the far end."""
    dice = random.Random(5)
    opened = {each: dice.randrange(4) for each in range(100, 100_000) if dice.random() < share}
    told = set([each for each, times in opened.items() if times][:300])
    text, _ = note_down(Noted(100, 100_000, opened))
    noted = read_notes(text)
    assert len(text) <= MOST_CHARACTERS
    assert noted is not None
    assert noted.end > 10_000
    assert all(noted.is_done(each) == (each not in opened) for each in range(100, noted.end))
    assert all(noted.failures[each] == opened[each] for each in told if each < noted.end)


def test_a_window_of_ten_thousand_fits_whatever_is_open_in_it() -> None:
    """That is the default window."""
    dice = random.Random(6)
    opened = {
        each: 1 if dice.random() < 0.04 else 0 for each in range(10_000) if dice.random() < 0.5
    }
    noted = read_notes(note_down(Noted(0, 10_000, opened))[0])
    assert noted == Noted(0, 10_000, opened)


@given(st.binary(max_size=60), st.booleans())
def test_broken_notes_are_no_notes_or_harmless(garbage: bytes, is_ours: bool) -> None:
    """Nothing is raised, whatever a broker gives back."""
    noted = read_notes(base64.b64encode((b"c1" if is_ours else b"") + garbage).decode())
    assert noted is None or noted.start <= noted.end


@pytest.mark.parametrize("text", ["", "hello", "é", "e30=", "YzE=", "YzEA", "YzECAAAA"])
def test_notes_of_others_are_no_notes(text: str) -> None:
    """Other programs write there, too."""
    assert read_notes(text) is None
