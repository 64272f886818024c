"""Code in the docs runs unchanged, and prints what the docs show."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carteiro.api.admin.redrives import NewRedrive
from carteiro.email.message import read_email
from carteiro.observability import log
from carteiro.stores.sqlite import opening
from support.pages import Block, blocks_of, pages, runnable

_POSTED = re.compile(r"http://[^/\s]+(/[^\s'\"]+)(?:(?!curl ).)*?-d '(.*?)'", re.DOTALL)
_READERS: dict[str, Callable[[str], object]] = {
    "/v1/email/send": read_email,
    "/admin/v1/redrives": NewRedrive.model_validate_json,
}


def _programs(page: str) -> list[tuple[Block, str | None]]:
    """The Python blocks of a page, each with its output: the text block right behind it."""
    return list(runnable(page, "python"))


def _curl_bodies() -> list[tuple[str, str]]:
    shell = [block for page in pages() for block in blocks_of(page) if block.language == "bash"]
    return [posted for block in shell for posted in _POSTED.findall(block.code)]


@pytest.mark.parametrize("page", [page for page in pages() if _programs(page)])
def test_every_program_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each Python block is a whole program; those of a page run in order, in one empty folder."""
    monkeypatch.chdir(tmp_path)

    for block, printed in _programs(page):
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(block.code, f"{page}:{block.line}", "exec"), names)
        log.configure("off")  # a program may have turned it on for its whole process
        said = capsys.readouterr().out
        if printed is not None:
            assert said == printed, f"{page}:{block.line}"


@pytest.mark.parametrize(("path", "body"), _curl_bodies())
def test_every_body_of_a_curl_line_is_accepted(path: str, body: str) -> None:
    """The pasted line gets a 202."""
    assert _READERS[path](body)


def test_every_query_runs_on_a_fresh_store(tmp_path: Path) -> None:
    queries = [block for page in pages() for block in blocks_of(page) if block.language == "sql"]
    assert queries

    with closing(opening.connect(tmp_path / "fresh.db", busy_timeout_ms=1000)) as db:
        opening.migrate(db, tmp_path / "fresh.db")
        for query in queries:
            assert db.execute(query.code).fetchall() == []


def test_pages_have_programs() -> None:
    """The tutorial and the README: a page that hides them from this test proves nothing."""
    assert _programs("docs/tutorial/first-email-from-python.md")
    assert _programs("README.md")
    assert _curl_bodies()
