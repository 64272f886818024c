"""Check the prose of the clean folders against the word list: the term of the trade, not a picture of it.

Prose is: Markdown outside code, docstrings, comments, and texts in code of three words or more. A folder joins `CLEAN`
when all its words are plain; from then on this check keeps it so.
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

CLEAN: tuple[str, ...] = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "bench/",
    "changelog.d/",
    "demo/",
    "deploy/",
    "docs/README.md",
    "docs/errors_page.py",
    "docs/explanation/",
    "docs/generate.py",
    "docs/how-to/",
    "docs/reference/",
    "docs/runbooks/",
    "docs/verdicts_page.py",
    "src/carteiro/__init__.py",
    "src/carteiro/api/",
    "src/carteiro/app.py",
    "src/carteiro/cli/",
    "src/carteiro/config/",
    "src/carteiro/dead_letters/",
    "src/carteiro/doctor/",
    "src/carteiro/email/",
    "src/carteiro/engine/",
    "src/carteiro/errors.py",
    "src/carteiro/jobs/",
    "src/carteiro/maintenance/",
    "src/carteiro/model/",
    "src/carteiro/observability/",
    "src/carteiro/path/",
    "src/carteiro/policy/",
    "src/carteiro/ports/",
    "src/carteiro/providers/",
    "src/carteiro/runtime/",
    "src/carteiro/tickets/",
    "src/carteiro/views/",
    "tests/config/",
    "tests/conftest.py",
    "tests/dead_letters/",
    "tests/deploy/",
    "tests/docs/",
    "tests/end_to_end/",
    "tests/engine/",
    "tests/maintenance/",
    "tests/observability/",
    "tests/path/",
    "tests/policy/",
    "tests/providers/",
    "tests/runtime/",
    "tests/support/",
    "tests/support_checks/",
    "tests/test_app.py",
    "tests/test_app_one_message.py",
    "tests/tickets/",
    "tests/views/",
    "tools/",
)

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
_LEAST_WORDS = 3


class Prose(NamedTuple):
    """A piece of text for people, and the line it begins in."""

    line: int
    text: str
    is_docstring: bool = False


def main() -> int:
    """Print every finding; fail if there is one."""
    found = [each for file in _clean_files() for each in _findings(file)]
    for each in found:
        print(each)
    if found:
        print(
            f"{len(found)} findings. The plain word is behind each; the list is in tools/words.py."
        )
    return min(1, len(found))


def _clean_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *CLEAN],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [REPOSITORY / name for name in listed.stdout.splitlines()]
    return [
        each
        for each in files
        if each.suffix in {".md", ".py"} and each.exists() and each != Path(__file__)
    ]


def _findings(file: Path) -> Iterator[str]:
    text = file.read_text("utf-8")
    for prose in _of_markdown(text) if file.suffix == ".md" else _of_python(text):
        plain = _THERE_IS.sub(
            " ", _CODE_SPAN.sub(lambda span: "\n" * span[0].count("\n"), prose.text)
        )
        for bad, good in _BAD.items():
            for hit in bad.finditer(plain):
                line = prose.line + plain.count("\n", 0, hit.start())
                yield f"{file.relative_to(REPOSITORY)}:{line}: {hit[0]!r}: {good}"
        if prose.is_docstring and (odd := _BEGINS_ODDLY.match(prose.text)):
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
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
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


if __name__ == "__main__":
    sys.exit(main())
