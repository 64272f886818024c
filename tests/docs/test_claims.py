"""What prose lists or counts is what the code has."""

import re

import pytest

import generate
from carteiro.path.judge import MOST_CLAIMS
from carteiro.policy.fairness import LEAST_WEIGHT, MOST_WEIGHT, SCALE, SUSPECT_CLAIMS
from carteiro.policy.html import _LARGEST_PARSED
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.stores.sqlite.opening import _OLDEST_SQLITE
from support.pages import REPOSITORY, text_of

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_COMMAND = re.compile(r"^\| `make ([a-z]+)", re.MULTILINE)
_TARGET = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)

LEASES = "docs/explanation/leases-holds-and-fencing.md"
FAIRNESS = "docs/explanation/fairness.md"


@pytest.mark.parametrize(
    ("page", "claim"),
    [
        ("README.md", " --> ".join(generate.stage_names())),
        ("CONTRIBUTING.md", ", ".join(generate.stage_names())),
        ("CHANGELOG.md", ", ".join(generate.stage_names())),
        (LEASES, f"({LONGEST_HOLD_MS // 60_000} minutes)"),
        (LEASES, f"From the {ORDINALS[SUSPECT_CLAIMS + 1]} claim on"),
        (LEASES, f"After {NUMBERS[MOST_CLAIMS]} claims"),
        (FAIRNESS, f"costs {SCALE:,}"),
        (FAIRNESS, f"from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"),
        (
            "docs/explanation/decisions/0007-html-judged-by-a-parser.md",
            f"{_LARGEST_PARSED // 1024} Ki characters",
        ),
        (
            "docs/explanation/choosing-a-backend.md",
            f"{_OLDEST_SQLITE[0]}.{_OLDEST_SQLITE[1]} or newer",
        ),
    ],
)
def test_a_claim_in_prose_is_what_the_code_says(page: str, claim: str) -> None:
    """A number or a list that changes in the code must change on its page."""
    assert claim in " ".join(text_of(page).split())


def test_the_table_of_commands_is_what_make_offers() -> None:
    """Every command that `make` lists is explained, and no other."""
    targets = set(_TARGET.findall((REPOSITORY / "Makefile").read_text("utf-8")))

    assert set(_COMMAND.findall(text_of("CONTRIBUTING.md"))) == targets - {"help", "services"}
