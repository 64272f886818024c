"""Print how heavy the source is: lines, modules, SQL files, names of providers outside their folders, import cycles."""

import ast
import io
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src"
PACKAGE = ROOT / "carteiro"
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Lines with code on them: no blanks, comments or docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def imports(path: Path) -> set[str]:
    """The modules of the package that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return {name for name in found if name.startswith("carteiro")}


def rooms() -> dict[str, set[str]]:
    """Which room (folder or module at the root) imports which others."""
    graph: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imports(path):
            there = name.split(".")[1] if "." in name else ""
            if (
                there
                and there != here
                and ((PACKAGE / there).is_dir() or (PACKAGE / f"{there}.py").exists())
            ):
                graph[here].add(there)
    return graph


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Rooms that reach themselves, each group once."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        pending = list(graph[start])
        while pending:
            each = pending.pop()
            if each not in seen:
                seen.add(each)
                pending += graph.get(each, ())
        return seen

    reached = {each: reach(each) for each in list(graph)}
    groups = {
        tuple(sorted(b for b in reached if a in reached[b] and b in reached[a]))
        for a in reached
        if a in reached[a]
    }
    return [" <-> ".join(group) for group in sorted(groups)]


def naming(provider: str) -> tuple[list[str], list[str]]:
    """Return files outside a provider's folder that import it, and those with its name as a text of their code."""
    importing, named = [], []
    for path in sorted(PACKAGE.rglob("*.py")):
        where = str(path.relative_to(PACKAGE))
        if where.startswith((f"providers/{provider}/", f"providers/{provider}.py")):
            continue
        if any(f"providers.{provider}" in name for name in imports(path)):
            importing.append(where)
        if any(provider == text for text in texts(path)):
            named.append(where)
    return importing, named


def texts(path: Path) -> set[str]:
    """Return the texts in a module's code."""
    constants = (
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant)
    )
    return {node.value for node in constants if isinstance(node.value, str)}


def forwarders() -> list[str]:
    """Return methods whose whole body calls the same method of something else with the same arguments."""
    return sorted(
        f"{path.relative_to(PACKAGE)}:{node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _forwards(node)
    )


def _forwards(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = [
        each
        for each in method.body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    call = body[0].value
    if isinstance(call, ast.Await):
        call = call.value
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != method.name
    ):
        return False
    arguments = [
        each.arg for each in [*method.args.args, *method.args.kwonlyargs] if each.arg != "self"
    ]
    passed = [each.id for each in call.args if isinstance(each, ast.Name)]
    passed += [each.value.id for each in call.keywords if isinstance(each.value, ast.Name)]
    return arguments == passed and len(passed) == len(call.args) + len(call.keywords)


def main() -> None:
    """Print all of it."""
    python = list(PACKAGE.rglob("*.py"))
    print(
        f"code lines of Python          {sum(code_lines(p.read_text('utf-8')) for p in python):>7,}"
    )
    print(
        f"lines of Python               {sum(len(p.read_text('utf-8').splitlines()) for p in python):>7,}"
    )
    print(f"modules                       {len(python):>7,}")
    print(
        f"modules at the root           {len([p for p in PACKAGE.glob('*.py') if not p.stem.startswith('__')]):>7,}"
    )
    sql = [*PACKAGE.rglob("*.sql")]
    print(f"SQL files                     {len(sql):>7,}")
    print(
        f"lines of SQL                  {sum(len(p.read_text('utf-8').splitlines()) for p in sql):>7,}"
    )
    for provider in ("smtp", "ses", "resend", "sandbox", "noop"):
        importing, named = naming(provider)
        print(
            f"{provider:<8} imported by {len(importing):>2}, named in {len(named):>2} files outside its folder"
        )
        if "-v" in sys.argv:
            print("         " + ", ".join(named))
    print(f"forwarding methods            {len(forwarders()):>7,}")
    if "-v" in sys.argv:
        print("         " + ", ".join(forwarders()))
    print("cycles of rooms: " + ("; ".join(cycles(rooms())) or "none"))


if __name__ == "__main__":
    main()
