"""Pages that come from code say what the code says."""

import pytest

import generate
from carteiro import config
from carteiro.model import TRANSITIONS


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    """What is enumerated in the docs comes from code; `make docs` writes it."""
    assert (generate.REFERENCE / name).read_text("utf-8") == generate.PAGES[name]()


def test_the_states_page_draws_every_transition() -> None:
    """The diagram is the table of transitions, no more and no less."""
    page = generate.states_page()

    drawn = {tuple(line.split(" --> ")) for line in page.splitlines() if " --> " in line}
    inner = {(start.strip(), end) for start, end in drawn if "[*]" not in {start.strip(), end}}
    assert inner == {(str(start), str(end)) for start in TRANSITIONS for end in TRANSITIONS[start]}


@pytest.mark.parametrize("key", config.KEYS)
def test_the_settings_page_has_every_setting(key: str) -> None:
    """A setting nobody can look up does not exist."""
    assert f"### `{key}`\n" in generate.settings_page()
