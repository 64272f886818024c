"""Answers of the API as JSON documents: camelCase, times in ISO 8601 with milliseconds and Z."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Self, TypeAlias, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from carteiro.model import Page
from carteiro.views.moments import in_iso

Row = TypeVar("Row")

JSON = "application/json"

Moment: TypeAlias = Annotated[
    datetime,
    PlainSerializer(in_iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Document(BaseModel):
    """A JSON document; None is left out, unless ``nulls`` are asked for."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid"
    )

    @classmethod
    def of(cls, thing: object, **others: object) -> Self:
        """The document of a value: its fields by their names, and those that are given."""
        own = {each: getattr(thing, each) for each in cls.model_fields if each not in others}
        return cls(**own, **others)

    def as_response(
        self, status: int = 200, *, headers: dict[str, str] | None = None, nulls: bool = False
    ) -> Response:
        """The response with this document."""
        text = self.model_dump_json(by_alias=True, exclude_none=not nulls)
        return Response(text, status, headers, media_type=JSON)


class JsonResponse(Response):
    """A document that was made without a model; without the framework's work on headers, which it does not need."""

    def __init__(self, document: Mapping[str, Any], status: int = 200) -> None:
        self.status_code = status
        self.body = orjson.dumps(document)
        self.background = None
        self.raw_headers = [
            (b"content-length", b"%d" % len(self.body)),
            (b"content-type", JSON.encode()),
        ]


class PageDocument(Document):
    """A page of a list; ``nextCursor`` leads to the next one, null at the end."""

    next_cursor: str | None

    @classmethod
    def response(cls, page: Page[Row], shown: Callable[[Row], Document]) -> Response:
        """The response with a page, each row as ``shown``."""
        items = [shown(each) for each in page.rows]
        document = cls.model_validate({"items": items, "next_cursor": page.next})
        return document.as_response(nulls=True)


class FieldFault(Document):
    """A wrong field, and the reason."""

    field: str
    message: str


class ErrorBody(Document):
    """An error; ``details`` name the wrong fields, if any."""

    code: str
    message: str
    request_id: str
    timestamp: Moment
    details: list[FieldFault]


class ErrorDocument(Document):
    """The one shape of every error."""

    error: ErrorBody


class Health(Document):
    """Status of this process: `live`; or `ready`, `degraded` (it works, and messages wait) or `unready`.

    `ledger` is `writable` or `unavailable`; a separate `queue` is `reachable`, `full` or `away`. `roles` has the status
    of each role of the process; the first one is its status. `detail` describes the consequences.
    """

    status: str
    ledger: str | None = None
    queue: str | None = None
    roles: dict[str, str] | None = None
    detail: str | None = None
