"""What a request says, read into documents: bodies and queries, judged alike."""

from typing import Annotated, Any, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.requests import Request

from carteiro.email import only_time_as_text, plainly
from carteiro.intake.http.body import read_json
from carteiro.model import Cursor

Asked = TypeVar("Asked", bound=BaseModel)

MOST_IN_A_PAGE = 200

Time = Annotated[AwareDatetime, BeforeValidator(only_time_as_text)]


class Question(BaseModel):
    """What is asked, in camelCase; unknown names are refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class PageQuestion(Question):
    """Which part of a list."""

    cursor: str | None = Field(
        default=None, max_length=1024, description="The nextCursor of the page before."
    )
    limit: int = Field(default=50, ge=1, le=MOST_IN_A_PAGE)

    @property
    def after(self) -> Cursor | None:
        """Where the page before ended."""
        return None if self.cursor is None else Cursor(self.cursor)


async def read_question(request: Request, shape: type[Asked]) -> Asked:
    """The JSON body as this document; `InvalidMessage` if it is not one."""
    body = await read_json(request)
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise plainly(error) from None


def read_query(request: Request, shape: type[Asked]) -> Asked:
    """The query as this document; `InvalidMessage` if it is not one."""
    given: dict[str, Any] = dict(request.query_params)
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        raise plainly(error) from None
