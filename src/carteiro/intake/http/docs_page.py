"""The documentation for people: one page without scripts, made of the OpenAPI document, loading nothing."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#222;background:#fff}"
    "summary{cursor:pointer;padding:.3rem 0}code,pre{font-family:ui-monospace,monospace}"
    "pre{background:#f5f5f5;padding:.6rem;overflow:auto}.method{display:inline-block;width:4.5rem;"
    "font-weight:bold}details{border-bottom:1px solid #ddd}details>div{padding:0 0 1rem 1rem}"
    "td,th{text-align:left;padding:.1rem 1rem .1rem 0;vertical-align:top}"
)
# Everything stands in the page itself, so nothing else is allowed in.
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


async def show_docs(request: Request) -> Response:
    """The page."""
    return HTMLResponse(page_of(request.app.openapi()), headers=_SAFE)


def page_of(document: Mapping[str, Any]) -> str:
    """The documentation as HTML."""
    title = escape(document["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(document['info'].get('summary', ''))}</p>"
        '<p>For machines: <a href="openapi.json">openapi.json</a></p>'
        f"{''.join(_sections(document))}</body></html>"
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
    yield f"<p>{escape(operation.get('description', ''))}</p>"
    rows = [
        (f"<code>{escape(each['name'])}</code>", each["in"], escape(each.get("description", "")))
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield _table(("parameter", "in", ""), rows)
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield f"<p>Body: <code>{escape(schema_name(content['schema']))}</code></p>"
    yield _table(
        ("status", "answer"),
        [(status, escape(answer_name(each))) for status, each in operation["responses"].items()],
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def schema_name(schema: Mapping[str, Any]) -> str:
    """What a schema is called."""
    reference: str = schema.get("$ref", "")
    return reference.rpartition("/")[2] or str(schema.get("type", "anything"))


def answer_name(answer: Mapping[str, Any]) -> str:
    """What an answer holds: the name of its document, or nothing."""
    for content in answer.get("content", {}).values():
        return schema_name(content.get("schema", {}))
    return "nothing"
