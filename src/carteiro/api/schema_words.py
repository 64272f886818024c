"""JSON schemas in words, for the documentation; code is marked as in Markdown. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from carteiro.model import value

Schema: TypeAlias = Mapping[str, Any]

_LONGEST_PATTERN = 30  # a longer one does not help readers
# The limits of a value: keys of the schema, and unit.
_BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minProperties", "maxProperties", " items"),
)


@value
class FieldWords:
    """One field of a document, for readers; ``limits`` and ``says`` may be empty."""

    name: str
    type: str
    is_required: bool
    limits: str
    says: str


def fields_of(document: Schema) -> Iterator[FieldWords]:
    """The fields of a document, in its order."""
    required = document.get("required", ())
    for name, schema in document.get("properties", {}).items():
        yield FieldWords(
            name=name,
            type=type_of(schema),
            is_required=name in required,
            limits=limits_of(schema),
            says=sentence(schema.get("description", "")),
        )


def type_of(schema: Schema) -> str:
    """The type of a value, for readers."""
    if "anyOf" in schema:
        return " or ".join(type_of(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("format") == "date-time":
        return "date and time"
    return name_of(schema)


def name_of(schema: Schema) -> str:
    """The name of a schema."""
    reference: str = schema.get("$ref", "")
    return reference.rpartition("/")[2] or str(schema.get("type", "anything"))


def limits_of(schema: Schema) -> str:
    """The allowed values, and the default."""
    told = [*_limits(schema)]
    if schema.get("default") not in (None, [], {}, ""):
        told.append(f"default {_plain(schema['default'])}")
    return "; ".join(told)


def _limits(schema: Schema) -> Iterator[str]:
    for each in schema.get("anyOf", ()):
        yield from _limits(each)
    for least, most, unit in _BOUNDS:
        yield from _between(schema.get(least), schema.get(most), unit)
    if "exclusiveMinimum" in schema:
        yield f"above {schema['exclusiveMinimum']}"
    if len(pattern := schema.get("pattern", "")) in range(1, _LONGEST_PATTERN + 1):
        yield f"matches `{pattern}`"
    if "items" in schema:
        yield from (f"each {limit}" for limit in _limits(schema["items"]))


def _between(least: float | None, most: float | None, unit: str) -> Iterator[str]:
    if least is not None and most is not None:
        yield f"{least} to {most}{unit}"
    elif most is not None:
        yield f"at most {most}{unit}"
    elif least is not None:
        yield f"at least {least}{unit}"


def _plain(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)


def sentence(text: str) -> str:
    """A docstring or description in one line."""
    return " ".join(text.replace("``", "`").split())
