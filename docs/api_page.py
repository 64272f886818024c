"""The reference page of the HTTP API, from its OpenAPI document."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from carteiro import Carteiro
from carteiro.api.application import create_api
from carteiro.api.docs_page import operations_of, schema_in
from carteiro.api.schema_words import FieldWords, fields_of, name_of, sentence

_INTRODUCTION = """\
JSON in camelCase; durations in whole milliseconds, times in ISO 8601 with `Z`. `/v1` needs a tenant's key,
`/admin/v1` an admin token with the [role](roles.md) for it, each as `X-API-Key`, `Authorization: Bearer` or `apikey`.
The full description with every field is at `/openapi.json`, and as a page at `/docs`.

Every error is `{"error": {"code", "message", "requestId", "timestamp", "details": [{"field", "message"}]}}`; a
refused request changes nothing. Every answer has an `X-Request-Id`: that of the request, or a new one.
Lists have `items` and `nextCursor`, the `cursor` of the next request; null at the end.
"""


def api_page(note: str) -> str:
    """Every endpoint with its parameters, body and responses; then every document with its fields."""
    described = asyncio.run(document())
    return (
        f"# HTTP API\n\n{note}\n{_INTRODUCTION}"
        f"{''.join(_endpoints(described))}\n## Documents\n{''.join(_documents(described))}"
    )


async def document() -> dict[str, Any]:
    """The OpenAPI document."""
    async with Carteiro.open("memory://") as post:
        return create_api(post).openapi()


def _endpoints(document: Mapping[str, Any]) -> Iterator[str]:
    section = ""
    for path, method, operation in operations_of(document):
        if operation["tags"][0] != section:
            section = operation["tags"][0]
            yield f"\n## {section.capitalize()}\n"
        yield f"\n### {method} {path}\n\n{operation['summary'].rstrip('?')}. {sentence(operation['description'])}\n\n"
        yield from _parts(operation)


def _parts(operation: Mapping[str, Any]) -> Iterator[str]:
    asked = [
        f"`{each['name']}`" for each in operation.get("parameters", ()) if each["in"] != "path"
    ]
    if asked:
        yield f"- parameters: {', '.join(asked)}\n"
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"- body: {name_of(content['schema'])} as `{media_type}`\n"
    answers = operation["responses"].items()
    good = [f"{status} {_answer_name(each)}" for status, each in answers if status < "400"]
    refusals = [status for status, _ in answers if status >= "400"]
    yield f"- responses: {', '.join(good)}\n- errors: {', '.join(refusals)}\n"


def _documents(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"\n### {name}\n\n{sentence(schema.get('description', ''))}\n"
        if rows := [_field_row(each) for each in fields_of(schema)]:
            yield "\n| field | type | required | limits | |\n| --- | --- | --- | --- | --- |\n"
            yield from rows
        elif choices := schema.get("enum"):
            yield f"\nOne of {', '.join(f'`{each}`' for each in choices)}.\n"


def _field_row(field: FieldWords) -> str:
    required = "yes" if field.is_required else ""
    cells = (f"`{field.name}`", field.type, required, field.limits, field.says)
    return f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |\n"


def _answer_name(answer: Mapping[str, Any]) -> str:
    schema = schema_in(answer)
    return "nothing" if schema is None else name_of(schema)
