"""Which templates are forgotten for a new one."""

import pytest

from carteiro.model import MOST_TEMPLATES, TooManyTemplates
from carteiro.policy.templates import forgotten_for


@pytest.mark.parametrize(
    ("type", "deleted", "in_use", "forgotten"),
    [
        ("new", 0, 0, []),
        ("new", 3, MOST_TEMPLATES - 4, []),
        ("new", 3, MOST_TEMPLATES - 3, ["deleted-0"]),
        ("new", 3, MOST_TEMPLATES - 1, ["deleted-0", "deleted-1", "deleted-2"]),
        ("new", 3, MOST_TEMPLATES, TooManyTemplates()),
        ("new", 0, MOST_TEMPLATES, TooManyTemplates()),
        ("deleted-2", 3, MOST_TEMPLATES, []),
        ("in-use-7", 0, MOST_TEMPLATES, []),
    ],
)
def test_what_was_deleted_first_goes_first(
    type: str, deleted: int, in_use: int, forgotten: list[str] | TooManyTemplates
) -> None:
    """As many as have to; a type that is known needs no room."""
    known = {f"deleted-{number}": True for number in range(deleted)}
    known |= {f"in-use-{number}": False for number in range(in_use)}

    assert forgotten_for(type, known) == forgotten
