"""Meaning of Resend's errors: the documented table."""

import pytest

from carteiro.model import Category
from carteiro.providers.resend.rules import classify_resend

LATER, NEVER = True, False

PERMANENT = Category.PERMANENT_ERROR
TRANSIENT = Category.TRANSIENT_ERROR
QUOTA = Category.QUOTA_ERROR
CONFIGURATION = Category.CONFIGURATION_ERROR
VALIDATION = Category.VALIDATION_ERROR


@pytest.mark.parametrize(
    ("name", "status", "code", "category", "retryable"),
    [
        ("rate_limit_exceeded", 429, "RESEND_RATE_LIMIT_EXCEEDED", QUOTA, LATER),
        ("invalid_api_key", 403, "RESEND_INVALID_API_KEY", CONFIGURATION, NEVER),
        ("validation_error", 400, "RESEND_VALIDATION_ERROR", VALIDATION, NEVER),
        ("a_new_name", 418, "RESEND_A_NEW_NAME", PERMANENT, NEVER),
        ("a_new_name", 500, "RESEND_A_NEW_NAME", TRANSIENT, LATER),
        ("", None, "RESEND_UNKNOWN", TRANSIENT, LATER),
    ],
)
def test_error_of_resend_has_its_documented_code(
    name: str, status: int | None, code: str, category: Category, *, retryable: bool
) -> None:
    """Its name decides; for a new name, the class of its status."""
    failure = classify_resend(name, "what it said", status)

    assert (failure.code, failure.category, failure.retryable) == (code, category, retryable)
    assert (failure.original_code, failure.reason) == (name or None, "what it said")
