"""The estimate for answers that nobody has seen."""

from pathlib import Path

import pytest

import verdicts
from left_out import LeftOut

_ALONE = "554 the frobnicator reports an internal error"
_ROWS = [
    {"truth": "retry", "stage": "", "mx": "", "answer": _ALONE},
    {"truth": "perm", "stage": "", "mx": "", "answer": "554 message contains a virus"},
]
_DOCUMENTED = ["554 5.7.1 refused: it contains a virus"]


def test_a_phrase_of_one_row_alone_is_left_out_for_that_row() -> None:
    """Otherwise a rule that was written for an answer would count as knowledge about answers that nobody has seen."""
    as_it_is = verdicts.score(_ROWS)
    estimated = verdicts.score(_ROWS, LeftOut(_ROWS, _DOCUMENTED))

    assert (as_it_is["right"], as_it_is["by_code"]) == (2, 0)
    assert (estimated["right"], estimated["by_code"]) == (1, 1)


def test_a_phrase_that_a_document_has_stays() -> None:
    """Such a phrase was not learnt from the row."""
    estimated = verdicts.score(_ROWS, LeftOut(_ROWS, [*_DOCUMENTED, "451 internal error"]))

    assert (estimated["right"], estimated["by_code"]) == (2, 0)


def test_a_phrase_of_one_part_alone_is_left_out_for_its_rows() -> None:
    """Rows that are much alike support each other's phrases; in one part, they do not."""
    alike = [*_ROWS, {**_ROWS[0], "answer": f"{_ALONE} again"}]

    by_rows = verdicts.score(alike, LeftOut(alike, _DOCUMENTED))
    in_one_part = verdicts.score(alike, LeftOut(alike, _DOCUMENTED, 1))

    assert (by_rows["answers"], by_rows["right"], by_rows["by_code"]) == (3, 3, 0)
    assert (in_one_part["answers"], in_one_part["right"], in_one_part["by_code"]) == (3, 1, 2)


def test_rules_are_complete_again_afterwards() -> None:
    """A row must not be judged without the phrases of another."""
    left_out = LeftOut(_ROWS, _DOCUMENTED)
    with left_out.without(_ROWS[:1]):
        pass

    assert verdicts.score(_ROWS)["right"] == 2


def test_a_share_has_the_interval_of_wilson() -> None:
    """As in its published example: 81 of 263."""
    assert verdicts.bounds(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert verdicts.bounds(0, 0) == (0.0, 1.0)


def test_a_file_is_scored_in_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints one column for each."""
    file = tmp_path / "answers.csv"
    file.write_text(f"truth,stage,mx,answer\nretry,,,{_ALONE}\n")

    verdicts.tell(file, 0)

    printed = capsys.readouterr().out
    assert "1 labelled answers, 1 of them counted" in printed
    assert "100.0% (20.7%-100.0%)" in printed
