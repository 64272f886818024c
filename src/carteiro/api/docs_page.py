"""The documentation for people: one page without scripts, made of the OpenAPI document, loading nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from carteiro.api import schema_words as words

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#222;background:#fff}"
    "summary{cursor:pointer;padding:.3rem 0}code,pre{font-family:ui-monospace,monospace}"
    "pre{background:#f5f5f5;padding:.6rem;overflow:auto}.method{display:inline-block;width:4.5rem;"
    "font-weight:bold}details{border-bottom:1px solid #ddd}details>div{padding:0 0 1rem 1rem}"
    "td,th{text-align:left;padding:.1rem 1rem .1rem 0;vertical-align:top}"
)
_MARKED = re.compile(r"`([^`]+)`")
# The page contains everything, so nothing else may be loaded.
SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def page_of(document: Mapping[str, Any]) -> str:
    """The documentation as HTML."""
    title = escape(document["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(document['info'].get('summary', ''))}</p>"
        '<p>For machines: <a href="openapi.json">openapi.json</a></p>'
        f"{''.join(_sections(document))}"
        f"<h2>Documents</h2>{''.join(_documents(document))}</body></html>"
    )


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    section = ""
    for path, method, operation in operations_of(document):
        if operation["tags"][0] != section:
            section = operation["tags"][0]
            yield f"<h2>{escape(section.capitalize())}</h2>"
        yield (
            f'<details><summary><span class="method">{method}</span><code>{escape(path)}</code> '
            f"{escape(operation['summary'])}</summary><div>{''.join(_parts(operation))}</div></details>"
        )


def operations_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each path, method and operation of an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _parts(operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p>{_marked(words.sentence(operation.get('description', '')))}</p>"
    rows = [
        (
            _code(each["name"]),
            each["in"],
            _marked(words.type_of(each["schema"])),
            _marked(words.limits_of(each["schema"])),
            _marked(words.sentence(each.get("description", ""))),
        )
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield _table(("parameter", "in", "type", "limits", ""), rows)
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield f"<p>Body: {_linked(content['schema'])}</p>"
    yield _table(
        ("status", "answer"),
        [(status, _answer(each)) for status, each in operation["responses"].items()],
    )


def _documents(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document["components"]["schemas"].items()):
        says = _marked(words.sentence(schema.get("description", "")))
        yield f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{says}</p>'
        if rows := [_field_row(each) for each in words.fields_of(schema)]:
            yield _table(("field", "type", "required", "limits", ""), rows)
        else:
            yield f"<p>{_marked(words.type_of(schema))}</p>"


def _field_row(field: words.FieldWords) -> tuple[str, ...]:
    return (
        _code(field.name),
        _marked(field.type),
        "yes" if field.is_required else "",
        _marked(field.limits),
        _marked(field.says),
    )


def _answer(answer: Mapping[str, Any]) -> str:
    schema = schema_in(answer)
    return "nothing" if schema is None else _linked(schema)


def _linked(schema: Mapping[str, Any]) -> str:
    name = escape(words.name_of(schema))
    return f'<a href="#{name}"><code>{name}</code></a>' if "$ref" in schema else _code(name)


def _marked(text: str) -> str:
    """The text, with code marks as HTML."""
    return _MARKED.sub(r"<code>\1</code>", escape(text))


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def schema_in(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The shape of the document of an answer; None if it has none."""
    for content in answer.get("content", {}).values():
        schema: Mapping[str, Any] = content.get("schema", {})
        return schema
    return None
