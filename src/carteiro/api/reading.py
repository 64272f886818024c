"""Requests, read into documents: bodies and queries."""

from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

import pydantic
from pydantic import Field
from pydantic.alias_generators import to_camel
from pydantic_core import to_json
from starlette.requests import Request

from carteiro.api.body import read_json
from carteiro.email.message import (
    MOST_VALUES,
    only_time_as_text,
    plainly,
    read_fields,
    refuse_crowds,
    refuse_many_parts,
    values_fault,
)
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import Cursor

Asked = TypeVar("Asked", bound=pydantic.BaseModel)

MOST_IN_A_PAGE = 200


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be a time within the years 1 to 9999 of UTC") from None


# Not strict inside: the check returns a text, which a strict field would refuse as a time.
Time = Annotated[
    pydantic.AwareDatetime,
    pydantic.BeforeValidator(only_time_as_text),
    pydantic.AfterValidator(_in_utc),
    Field(strict=False),
]

_MOST_FIELDS = 100  # of an object with known fields: more than any has
_MOST_PARTS = 50_000


class Question(pydantic.BaseModel):
    """A request in camelCase; unknown names are refused, and JSON values are never converted to another type."""

    model_config = pydantic.ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True
    )


class PageQuestion(Question):
    """A page of a list."""

    cursor: str | None = Field(
        default=None, max_length=1024, description="The nextCursor of the previous page."
    )
    limit: int = Field(default=50, ge=1, le=MOST_IN_A_PAGE)

    @property
    def after(self) -> Cursor | None:
        """End of the previous page."""
        return None if self.cursor is None else Cursor(self.cursor)


async def read_question(request: Request, shape: type[Asked]) -> Asked:
    """The JSON body as this document; `InvalidMessage` if it is not one."""
    body = await read_json(request)
    refuse_many_parts(body, _MOST_PARTS)
    fields = read_fields(body)
    refuse_crowds(fields, *_bounds(shape))
    if (fault := values_fault(fields)) is not None:
        raise InvalidMessage([FieldError("body", fault)])
    try:
        return shape.model_validate_json(to_json(fields))
    except pydantic.ValidationError as error:
        raise plainly(error) from None


@cache
def _bounds(shape: type[pydantic.BaseModel]) -> tuple[int, dict[str, int]]:
    """The most fields that a document may have, and those of its fields that are documents, by their JSON names."""
    if issubclass(shape, pydantic.RootModel):
        return MOST_VALUES, {}
    return _MOST_FIELDS, {
        field.alias or name: _MOST_FIELDS
        for name, field in shape.model_fields.items()
        for each in (field.annotation, *get_args(field.annotation))
        if isinstance(each, type) and issubclass(each, pydantic.BaseModel)
    }


def read_query(request: Request, shape: type[Asked]) -> Asked:
    """The query as this document; `InvalidMessage` if it is not one."""
    given: dict[str, Any] = dict(request.query_params)
    try:
        return shape.model_validate(given, strict=False)  # all values of a query are text
    except pydantic.ValidationError as error:
        raise plainly(error) from None
