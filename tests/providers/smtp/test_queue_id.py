"""The relay's queue id of a mail, from any answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.providers.smtp.queue_id import LONGEST_ID, queue_id


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("250 2.0.0 Ok: queued as 4XyZ1q2Wb3z9", "4XyZ1q2Wb3z9"),
        ("250 2.0.0 from MTA(smtp:[::1]:10025): 250 2.0.0 Ok: queued as 4XyZ.", "4XyZ"),
        ("250 2.0.0 Ok: Queued  as 4XyZ", "4XyZ"),
        ("250 2.0.0 Ok: queued as ...", "Ok: queued as ..."),
        ("250 OK id=1tCQhR-000000003Wd-0vXy", "1tCQhR-000000003Wd-0vXy"),
        ("250 2.0.0 6fd1d0a3 Message accepted for delivery", "6fd1d0a3"),
        ("250 2.0.0 4AFNo1qX031337 Message accepted for delivery", "4AFNo1qX031337"),
        ("250 Ok 0100018c2f3a4b5c-6d7e8f90-000000", "0100018c2f3a4b5c-6d7e8f90-000000"),
        ("250-2.0.0 Thanks\n250 2.0.0 Ok: queued as 77", "77"),
        ("250 2.0.0 OK  1700000000 abc-123 - gsmtp", "OK 1700000000 abc-123 - gsmtp"),
        ("250 Ok", "Ok"),
        ("250", "250"),
        ("250 2.0.0", "250 2.0.0"),
    ],
)
def test_queue_id_is_found_in_known_formats(reply: str, found: str) -> None:
    """Otherwise it is the whole text."""
    assert queue_id(reply) == found


@given(st.text())
def test_any_answer_has_an_id_of_bounded_length(text: str) -> None:
    """It is stored, shown and searched for."""
    found = queue_id(f"250 {text}")

    assert 0 < len(found) <= LONGEST_ID
