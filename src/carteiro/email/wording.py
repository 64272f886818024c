"""Rules that a value breaks, in plain words: documents of the API, files and options of the command line."""

from typing import Final

from pydantic_core import ErrorDetails

NOT_JSON: Final = "is not valid JSON"
_MESSAGES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "json_invalid": NOT_JSON,
    "string_type": "must be a string",
    "string_unicode": "is not valid Unicode",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} items",
    **dict.fromkeys(("bool_parsing", "bool_type"), "must be true or false"),
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number"),
    **dict.fromkeys(("int_from_float", "int_parsing", "int_type"), "must be an integer"),
    "int_parsing_size": "is too large",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    **dict.fromkeys(("enum", "literal_error"), "must be {expected}"),
    **dict.fromkeys(("uuid_parsing", "uuid_type"), "must be a UUID"),
    "time_as_text": "must be an ISO 8601 date and time",
    "timezone_aware": "must have a time zone",
}


def in_plain_words(error: ErrorDetails) -> str:
    """The rule that a value breaks."""
    return _MESSAGES.get(error["type"], "is not valid").format_map(error.get("ctx", {}))
