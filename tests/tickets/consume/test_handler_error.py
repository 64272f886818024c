"""Errors of handlers: equal ones are read once, and no other is taken for one of them."""

import errno

import pytest

from carteiro.tickets.consume.handler_error import HandlerError, read_error


class _Equal(str):
    """A text that claims to be any other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("away")


def with_note(error: Exception) -> Exception:
    """The same error with an attribute, as clients of HTTP have one for the status."""
    error.status = 503  # type: ignore[attr-defined]
    return error


def test_equal_errors_are_read_once() -> None:
    """Tickets that fail together fail of the same."""
    assert read_error(ConnectionError("away")) is read_error(ConnectionError("away"))


@pytest.mark.parametrize(
    ("error", "names"),
    [
        (OSError(errno.EHOSTUNREACH, "away"), {"EHOSTUNREACH"}),
        (OSError(errno.ENETDOWN, "away"), {"ENETDOWN"}),
        (TimeoutError("away"), {"TimeoutError"}),
        (with_note(OSError("away")), {"HTTP_503"}),
        (OSError(["unhashable"], "away"), {"OSError"}),
        (OSError(_Equal("text"), "away"), {"OSError"}),
    ],
)
def test_an_error_is_not_taken_for_another(error: Exception, names: set[str]) -> None:
    """The class, the text, the errno and attributes count; an errno may be anything."""
    for like in (OSError("away"), OSError(errno.ECONNREFUSED, "away")):
        read_error(like)

    read = read_error(error)

    assert names <= read.names
    assert "ECONNREFUSED" not in read.names


def test_long_texts_are_not_kept() -> None:
    """A text may be as long as an answer of a server."""
    one, other = (read_error(ValueError("x" * 10_000)) for _ in range(2))

    assert one == other
    assert one is not other


def test_errors_are_kept_up_to_a_limit() -> None:
    """Texts may differ for each ticket."""
    read: list[HandlerError] = [read_error(ValueError(str(each))) for each in range(1000)]

    assert [each.text for each in read] == [str(each) for each in range(1000)]
    assert read_error(ValueError("0")) is not read[0]
