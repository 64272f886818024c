"""Every link in the docs has a target."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pages import REPOSITORY, pages, text_of

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def _links(page: str) -> Iterator[str]:
    text = _FENCED.sub("", text_of(page))
    return (link for link in _LINK.findall(text) if "://" not in link)


def _anchors(file: Path) -> set[str]:
    text = _FENCED.sub("", file.read_text("utf-8"))
    headings = _HEADING.findall(_LINKED.sub(r"\1", text))
    return {_NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages())
def test_every_link_has_a_target(page: str) -> None:
    """A relative link names a file of the repository, and an existing heading if it names one."""
    broken = []
    for link in _links(page):
        target, _, anchor = link.partition("#")
        file = (REPOSITORY / page).parent / target if target else REPOSITORY / page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            broken.append(link)

    assert broken == []


def test_every_page_is_in_the_index() -> None:
    docs = REPOSITORY / "docs"
    named = {(docs / link.partition("#")[0]).resolve() for link in _links("docs/README.md")}
    written = {file.resolve() for file in docs.rglob("*.md")} - {docs / "README.md"}

    assert written - named == set()
