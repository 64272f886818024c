"""Fetching a small document: with a timeout, a size limit and no redirects."""

import threading
from collections.abc import Iterator
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from carteiro.runtime.fetching import MOST_BYTES, NotThere, fetch


class _Answers(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        """Answer as the path says."""
        self.asked.append(self.path)
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/small")
            self.end_headers()
            return
        self.send_response(404 if self.path == "/missing" else 200)
        self.end_headers()
        self.wfile.write(b"x" * (MOST_BYTES + 1 if self.path == "/large" else 3))

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine, and the paths it was asked for."""
    asked: list[str] = []
    handler = type("Answers", (_Answers,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", asked
        listening.shutdown()
        thread.join()


async def test_document_is_returned_unchanged(server: tuple[str, list[str]]) -> None:
    assert await fetch(f"{server[0]}/small") == b"xxx"


@pytest.mark.parametrize("path", ["/large", "/missing", "/redirect"])
async def test_failed_fetch_is_an_error(server: tuple[str, list[str]], path: str) -> None:
    """Too large, empty, or a redirect: none is followed."""
    with pytest.raises(OSError):
        await fetch(f"{server[0]}{path}")

    assert server[1] == [path]


@pytest.mark.parametrize(("path", "is_not_there"), [("/missing", True), ("/redirect", False)])
async def test_missing_document_has_its_own_error(
    server: tuple[str, list[str]], path: str, is_not_there: bool
) -> None:
    """It differs from a document that may be there later."""
    with pytest.raises(OSError) as error:
        await fetch(f"{server[0]}{path}")

    assert isinstance(error.value, NotThere) is is_not_there


@pytest.mark.parametrize("path", ["/missing", "/redirect"])
async def test_error_answer_releases_its_connection(
    server: tuple[str, list[str]], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, not at the next garbage collection."""
    answers: list[HTTPResponse] = []
    begin = HTTPResponse.begin

    def begin_and_note(answer: HTTPResponse) -> None:
        answers.append(answer)
        begin(answer)

    monkeypatch.setattr(HTTPResponse, "begin", begin_and_note)

    with pytest.raises(OSError):
        await fetch(f"{server[0]}{path}")

    assert [answer.isclosed() for answer in answers] == [True]
