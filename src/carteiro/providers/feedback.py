"""Read an event that a provider posts."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from carteiro.email.message import plainly, refuse_many_parts

Event = TypeVar("Event", bound=BaseModel)

_MOST_PARTS = 10_000
_MOST_STRINGS = 1_000  # names included; a text that holds JSON is one


def read_event(body: bytes, shape: type[Event]) -> Event:
    """The event; `InvalidMessage` if the body is none of this shape."""
    refuse_many_parts(body, _MOST_PARTS, _MOST_STRINGS)
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise plainly(error) from None
