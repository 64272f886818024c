"""The package that is installed elsewhere has every file that the program reads."""

import tomllib
from fnmatch import fnmatch

from support.pages import REPOSITORY

SOURCE = REPOSITORY / "src" / "carteiro"
_LEFT_OUT = {".pyc", ".pyo", ".md"}  # made, or for people who work on the source


def test_package_holds_every_file() -> None:
    """Stylesheets, scripts, pictures, templates, texts and statements: each is of a kind that pyproject.toml names."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [each for each in SOURCE.rglob("*") if each.is_file() and each.suffix not in _LEFT_OUT]

    missing = [
        each
        for each in files
        if each.suffix != ".py" and not any(fnmatch(each.name, pattern) for pattern in patterns)
    ]

    assert missing == []
    in_console = {each.suffix for each in files if "console" in each.relative_to(SOURCE).parts}
    assert in_console == {".css", ".html", ".js", ".py", ".svg", ".toml"}
    assert project["tool"]["setuptools"]["packages"]["find"] == {"where": ["src"]}  # all folders
