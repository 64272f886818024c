"""Notices, as people and programs read them."""

import pytest

from carteiro.views.notices import text, text_for_tenant, title_for_tenant, to_json
from support.alerting import notices_of


def test_end_has_no_value() -> None:
    """The last one was high, and says nothing about now."""
    begun, ended = notices_of("ManyDeadLetters", "")

    assert [to_json(each)["data"]["value"] for each in (begun, ended)] == [101, None]
    assert "Value 101" in text(begun)
    assert "Value" not in text(ended)


def test_administrator_is_led_on() -> None:
    """To a command, and to a file."""
    begun, _ = notices_of("ManyDeadLetters", "")

    assert "carteiro alerts show ManyDeadLetters" in text(begun)
    assert "docs/runbooks/dead-letters-grow.md in the source of Carteiro" in text(begun)


@pytest.mark.parametrize(
    ("alert", "subject"), [("TenantManyDeadLetters", "acme"), ("TemplateFails", "acme/welcome")]
)
def test_tenant_reads_what_it_means_and_what_to_do(alert: str, subject: str) -> None:
    """In its own words: commands are for operators."""
    begun, ended = notices_of(alert, subject)

    assert title_for_tenant(begun) == f"{subject}: messages are not delivered"
    assert "GET /v1/emails?status=FAILED" in text_for_tenant(begun)
    assert "Value 101" in text_for_tenant(begun)
    assert "carteiro " not in text_for_tenant(begun)
    assert begun.id in text_for_tenant(begun)
    assert title_for_tenant(ended) == f"{subject}: the alert has ended"
    assert "has ended" in text_for_tenant(ended)
