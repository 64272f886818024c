"""A worker that waits for its store in moments."""

import pytest

from carteiro.engine import storing
from support.working import A_MOMENT


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for the store are short; these lengths are not settings, and the waits are real."""
    monkeypatch.setattr(storing, "FIRST_WAIT_S", A_MOMENT)
    monkeypatch.setattr(storing, "LONGEST_WAIT_S", 2 * A_MOMENT)
