"""Schemas as text: the description of a field for people."""

from typing import Any

import pytest

from carteiro.api.schema_words import FieldWords, fields_of, limits_of, type_of


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "integer"}, "integer"),
        ({}, "anything"),
        ({"$ref": "#/components/schemas/Email"}, "Email"),
        ({"type": "string", "format": "date-time"}, "date and time"),
        ({"type": "string", "enum": ["a", "b"]}, "`a`, `b`"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
    ],
)
def test_type_is_described(schema: dict[str, Any], told: str) -> None:
    """A document by its name, an enum by its values."""
    assert type_of(schema) == told


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({}, ""),
        ({"default": None}, ""),
        ({"default": []}, ""),
        ({"default": False}, "default false"),
        ({"default": 0}, "default 0"),
        ({"minimum": 1, "maximum": 10, "default": 5}, "1 to 10; default 5"),
        ({"minimum": 1}, "at least 1"),
        ({"exclusiveMinimum": 0}, "above 0"),
        ({"maxLength": 320}, "at most 320 characters"),
        ({"maxProperties": 10}, "at most 10 items"),
        ({"maxItems": 5, "items": {"maxLength": 9}}, "at most 5 items; each at most 9 characters"),
        ({"anyOf": [{"minimum": 1}, {"type": "null"}]}, "at least 1"),
        ({"pattern": "^[a-z]+$"}, "matches `^[a-z]+$`"),
        ({"pattern": "x" * 31}, ""),
    ],
)
def test_limits_are_described(schema: dict[str, Any], told: str) -> None:
    """In readable form; a pattern only where a person can read it."""
    assert limits_of(schema) == told


def test_document_is_described_field_by_field() -> None:
    """In its order, with required fields and meanings."""
    document = {
        "properties": {
            "to": {"type": "string", "description": "An\n  ``address``."},
            "ttl": {"type": "integer", "minimum": 1},
        },
        "required": ["to"],
    }

    assert list(fields_of(document)) == [
        FieldWords("to", "string", is_required=True, limits="", says="An `address`."),
        FieldWords("ttl", "integer", is_required=False, limits="at least 1", says=""),
    ]
