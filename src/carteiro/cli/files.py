"""Input from files and stdin."""

import sys
from pathlib import Path
from typing import Any

import orjson

from carteiro.cli.exit_codes import NotFound, WrongUse

_STDIN = "-"


def read_text(file: Path | None) -> str | None:
    """The text of a file; ``-`` is stdin, None is nothing."""
    if file is None:
        return None
    try:
        return sys.stdin.read() if str(file) == _STDIN else file.read_text("utf-8")
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WrongUse(f"{file} is not UTF-8") from error


def read_words(typed: str | None, file: Path | None, *, flag: str) -> str | None:
    """The value of a flag, or the text of a file; ``-`` is stdin in both, None is nothing."""
    if typed is not None and file is not None:
        raise WrongUse(f"{flag} and {flag}-file set the same field: give one of them")
    return sys.stdin.read() if typed == _STDIN else typed if file is None else read_text(file)


def read_document(file: Path) -> dict[str, Any]:
    """The JSON object in a file; ``-`` is stdin."""
    return json_object(read_text(file) or "", str(file))


def json_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object in a text."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise WrongUse(f"{where} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise WrongUse(f"{where} must hold one JSON object")
    return document
