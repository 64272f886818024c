"""Check the prose of the repository against the word list: the term of the trade, not a picture of it.

Prose is: Markdown outside code, docstrings, names of tests, comments, and texts of three words or more.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]

# pattern: what to write instead
INSTEAD = {
    r"(is|are|was|were|be|been) away": "is down, unreachable",
    r"left alone": "skipped, not changed; of a provider: circuit open",
    r"told": "reported, said to be, informed",
    r"so (many|long)": "that many, a number; for that time",
    r"whoever": "the caller, the process that",
    r"beside": "alongside, next to, in addition to",
    r"is no (?!longer\b)[a-z]+": "is not a ..., there is no ...",
    r"parted": "split",
    r"round again": "again, another cycle",
    r"its words": "its text, its content",
    r"comes? to nothing": "fails",
    r"mend(s|ed|ing)?": "fix, repair; of a dead letter: edit",
    r"hand(s|ed|ing)? in": "submit",
    r"under way": "in flight, running",
    r"time-outs?": "timeout",
    r"merely": "only",
    r"as things stand": "now",
    r"nobody knows": "is unknown",
}
_BAD = {re.compile(rf"\b{bad}\b", re.IGNORECASE): good for bad, good in INSTEAD.items()}
_THERE_IS = re.compile(r"\bthere is no\b", re.IGNORECASE)
_BEGINS_ODDLY = re.compile(r"(What|Who|Whom|Whose|How|Whether)\b")
_CODE_SPAN = re.compile(r"``.+?``|`[^`]+`|\[[^\]]*\]\([^)]*\)|https?://\S+", re.DOTALL)
_SCRIPT_PROSE = re.compile(r"--[- ]*(?P<comment>.*)|'[^'\n]*'")
_LEAST_WORDS = 3


class Prose(NamedTuple):
    """A piece of text for people, and the line it begins in."""

    line: int
    text: str
    is_sentence: bool = False


def main() -> int:
    """Print every finding; fail if there is one."""
    found = [each for file in _files() for each in _findings(file)]
    for each in found:
        print(each)
    if found:
        print(
            f"{len(found)} findings. The plain word is behind each; the list is in tools/words.py."
        )
    return min(1, len(found))


def _files() -> list[Path]:
    """All files with prose but this one, which holds the list."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [REPOSITORY / name for name in listed.stdout.splitlines()]
    return [
        each
        for each in files
        if each.suffix in _PROSE_OF and each.exists() and each != Path(__file__).resolve()
    ]


def _findings(file: Path) -> Iterator[str]:
    text = file.read_text("utf-8")
    for prose in _PROSE_OF[file.suffix](text):
        plain = _THERE_IS.sub(
            " ", _CODE_SPAN.sub(lambda span: "\n" * span[0].count("\n"), prose.text)
        )
        for bad, good in _BAD.items():
            for hit in bad.finditer(plain):
                line = prose.line + plain.count("\n", 0, hit.start())
                yield f"{file.relative_to(REPOSITORY)}:{line}: {hit[0]!r}: {good}"
        if prose.is_sentence and (odd := _BEGINS_ODDLY.match(prose.text)):
            yield f"{file.relative_to(REPOSITORY)}:{prose.line}: begins with {odd[0]!r}: begin with the thing or a verb"


def _of_markdown(text: str) -> Iterator[Prose]:
    """All of a page but its code blocks, whose lines are left empty."""
    lines, is_code = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            lines.append("")
        else:
            lines.append("" if is_code else line)
    yield Prose(1, "\n".join(lines))


def _of_python(text: str) -> Iterator[Prose]:
    tree = ast.parse(text)
    docstrings = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            name = node.name.removeprefix("test_").replace("_", " ").capitalize()
            yield Prose(node.lineno, name, is_sentence=True)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_docstring = id(node) in docstrings
            if is_docstring or len(node.value.split()) >= _LEAST_WORDS:
                yield Prose(node.lineno, node.value, is_docstring)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Prose(token.start[0], token.string)


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first.value


def _of_scripts(text: str) -> Iterator[Prose]:
    """The comments and quoted texts of SQL and Lua, line by line."""
    for number, line in enumerate(text.split("\n"), start=1):
        for piece in _SCRIPT_PROSE.finditer(line):
            yield Prose(number, piece["comment"] or piece[0], is_sentence=True)


_PROSE_OF = {".md": _of_markdown, ".py": _of_python, ".sql": _of_scripts, ".lua": _of_scripts}

if __name__ == "__main__":
    sys.exit(main())
