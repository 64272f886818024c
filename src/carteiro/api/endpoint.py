"""Endpoints and their documentation: requests, answers and refusals."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar

from fastapi import FastAPI, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from carteiro.api.body import JSON_LINES
from carteiro.api.documents import JSON, Document, ErrorDocument
from carteiro.api.tracing import TRACE_HEADERS
from carteiro.model import value

Call: TypeAlias = Callable[[Request], Awaitable[Response]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[Response]])

_MARK = "endpoints"
_SCHEMAS = "#/components/schemas/{model}"
_IN_PATH = re.compile(r"{(\w+)}")
_PUT_TARGET = re.compile(r"{\w+}$")  # a PUT creates what its path ends with
_WHAT_PATHS_NAME = {
    "id": "Its id.",
    "name": "The name of an alert.",
    "key": "The id of a key, not the key itself.",
    "tenant": "The id of a tenant.",
    "token": "The last part of the link in a mail.",
    "type": "The type of a template.",
}


class Access(Enum):
    """The key that an endpoint needs."""

    ANYONE = None  # not (): the Enum of Python 3.11.2 takes an empty tuple for no value
    TENANT = (
        APIKeyHeader(name="X-API-Key", scheme_name="X-API-Key", auto_error=False),
        HTTPBearer(scheme_name="Bearer", auto_error=False),
    )
    ADMINISTRATOR = (
        APIKeyHeader(name="X-API-Key", scheme_name="Admin-X-API-Key", auto_error=False),
        HTTPBearer(scheme_name="Admin-Bearer", auto_error=False),
    )


@value
class Endpoint:
    """One method of one address, as a decorator of the function that answers it.

    The docstring of that function documents it. ``refuses`` are the statuses that its path, its access, its body and
    its query do not imply; ``also`` is another status with the same document. ``is_traced``: it submits messages.
    """

    method: str
    path: str
    summary: str
    answers: type[Document] | None = None
    status: int = 200
    also: int | None = None
    reads: type[BaseModel] | None = None
    reads_lines: bool = False
    query: type[BaseModel] | None = None
    headers: tuple[Mapping[str, Any], ...] = ()
    refuses: tuple[int, ...] = ()
    answers_with: type[Response] = JSONResponse
    is_traced: bool = False

    def __call__(self, method: Method) -> Method:
        """Mark a method of `Endpoints`; it may answer several."""
        vars(method).setdefault(_MARK, []).insert(0, self)  # decorators run from the lowest up
        return method


class Endpoints:
    """The methods of a class that are marked with an `Endpoint`, in their order, below ``prefix``.

    A path with fixed parts goes above one with an id in their place. Inherited methods do not count.
    """

    prefix = ""

    def endpoints(self) -> Iterator[tuple[Endpoint, Call]]:
        """Each endpoint, and the method that answers it."""
        for name, method in vars(type(self)).items():
            for each in getattr(method, _MARK, ()):
                yield replace(each, path=self.prefix + each.path), getattr(self, name)


def add_endpoint(api: FastAPI, endpoint: Endpoint, call: Call, *, tag: str, access: Access) -> None:
    """Put an endpoint into the application. Its documents are referred to, see `schemas_of`."""
    api.add_api_route(
        endpoint.path,
        call,
        methods=[endpoint.method],
        status_code=endpoint.status,
        tags=[tag],
        summary=endpoint.summary,
        response_model=None,
        response_class=endpoint.answers_with,
        responses=_answers(endpoint, access),
        # A lean route runs no dependency: these only document the keys, which the key ring checks.
        dependencies=[Security(each) for each in access.value or ()],
        openapi_extra=_what_it_reads(endpoint),
    )


def _answers(endpoint: Endpoint, access: Access) -> dict[int | str, dict[str, Any]]:
    documents: dict[int, type[Document]] = dict.fromkeys(_refusals(endpoint, access), ErrorDocument)
    if endpoint.answers is not None:
        documents |= {each: endpoint.answers for each in (endpoint.status, endpoint.also) if each}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {JSON: {"schema": _reference(document)}},
        }
        for status, document in sorted(documents.items())
    }


def _refusals(endpoint: Endpoint, access: Access) -> set[int]:
    statuses = {*endpoint.refuses, 500, 503}
    if "{" in (_PUT_TARGET.sub("", endpoint.path) if endpoint.method == "PUT" else endpoint.path):
        statuses.add(404)
    if access is not Access.ANYONE:
        statuses |= {401, 403, 429}
    if endpoint.reads is not None or endpoint.reads_lines:
        statuses |= {400, 408, 413, 415, 422, 429}
    if endpoint.query is not None:
        statuses |= {400, 422}
    return statuses


# --- parts that FastAPI cannot see, because a lean route reads the request by itself -----------


def _what_it_reads(endpoint: Endpoint) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    headers = [*endpoint.headers, *(TRACE_HEADERS if endpoint.is_traced else ())]
    if parameters := [*_in_path(endpoint), *_in_query(endpoint), *headers]:
        extra["parameters"] = parameters
    if endpoint.reads is not None:
        schema = {"schema": _reference(endpoint.reads)}
        extra["requestBody"] = {"required": True, "content": {JSON: schema}}
    if endpoint.reads_lines:
        lines = {"schema": {"type": "string", "description": "One JSON document a line."}}
        extra["requestBody"] = {"required": True, "content": {JSON_LINES: lines}}
    return extra


def _in_path(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _WHAT_PATHS_NAME[name],
            "schema": {"type": "string"},
        }
        for name in _IN_PATH.findall(endpoint.path)
    ]


def _in_query(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    shape = _inlined(endpoint.query)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in shape.get("required", ()),
            "schema": schema,
        }
        for name, schema in shape["properties"].items()
    ]


@cache
def _inlined(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a flat model, with its few references (enumerations) inlined."""
    shape = model.model_json_schema(by_alias=True)
    definitions = shape.pop("$defs", {})

    def inline(part: Any) -> Any:  # noqa: ANN401 - any part of a JSON document
        if isinstance(part, list):
            return [inline(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return definitions[part["$ref"].rpartition("/")[2]]
        return {name: inline(each) for name, each in part.items()}

    inlined: dict[str, Any] = inline(shape)
    return inlined


def _reference(document: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _SCHEMAS.format(model=document.__name__)}


def schemas_of(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The schemas of all documents that endpoints read and answer, by name."""
    read: set[type[BaseModel]] = set()
    answered: set[type[BaseModel]] = {ErrorDocument}
    for each in endpoints:
        read |= {each.reads} if each.reads is not None else set()
        answered |= {each.answers} if each.answers is not None else set()
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in read),
        *((model, "serialization") for model in answered),
    ]
    models.sort(key=lambda each: each[0].__name__)
    _, document = models_json_schema(models, ref_template=_SCHEMAS)
    schemas: dict[str, Any] = document["$defs"]
    return schemas
