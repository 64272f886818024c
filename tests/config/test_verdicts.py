"""Custom classification rules in the settings: valid ones, and errors."""

import json
import re
from pathlib import Path

import pytest

from carteiro.config import load
from carteiro.errors import ConfigError
from carteiro.model import Category, Scope
from carteiro.policy.own_rules import OwnRule
from carteiro.policy.stage import Stage

MEANING = 'category = "TRANSIENT_ERROR"\nretryable = true\nscope = "destination"\n'


def own_rules(tmp_path: Path, text: str) -> tuple[OwnRule, ...]:
    """The rules of a settings file."""
    file = tmp_path / "carteiro.toml"
    file.write_text(text, "utf-8")
    return load(file=file, environ={}).own_rules


def test_table_is_a_rule(tmp_path: Path) -> None:
    """With all its conditions, in the order of the file."""
    whole = (
        '[[verdicts]]\nname = "a"\nprovider = "smtp"\nstage = "rcpt"\nmx = "example.com"\n'
        f'code = "550"\nenhanced = "5.7.1"\ntext = "being moved"\n{MEANING}'
    )
    [first, second] = own_rules(
        tmp_path, f'{whole}[[verdicts]]\nname = "b"\ncode = "421"\n{MEANING}'
    )

    assert (first.provider, first.stage, first.mx) == ("smtp", Stage.RCPT, "example.com")
    assert (first.code, first.enhanced) == ("550", "5.7.1")
    assert first.text is not None
    assert first.text.search("Being MOVED")
    assert second == OwnRule(
        "b",
        Category.TRANSIENT_ERROR,
        retryable=True,
        scope=Scope.DESTINATION,
        code="421",
    )


def test_default_has_no_custom_rules() -> None:
    assert load(environ={}).own_rules == ()


def test_variable_holds_rules_as_json() -> None:
    rule = {
        "name": "a",
        "code": "550",
        "category": "QUOTA_ERROR",
        "retryable": True,
        "scope": "tenant",
    }

    [found] = load(environ={"CARTEIRO_VERDICTS": json.dumps([rule])}).own_rules

    assert (found.name, found.category, found.scope) == ("a", Category.QUOTA_ERROR, Scope.TENANT)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (f'name = "a"\n{MEANING}', "verdicts[1] = "),
        (f'name = "a"\n{MEANING}', "should have a condition: provider, stage, mx, code"),
        (f'name = "A b"\ncode = "550"\n{MEANING}', "verdicts[1].name = 'A b' (from "),
        (f'name = "a"\nstage = "later"\n{MEANING}', "verdicts[1].stage = 'later'"),
        (f'name = "a"\nstage = "later"\n{MEANING}', "'rcpt'"),
        (f'name = "a"\ntext = "(a+)+"\n{MEANING}', "should be fast on any text"),
        (f'name = "a"\ntext = "("\n{MEANING}', "should be a regular expression"),
        (f'name = "a"\ncode = "SES_THROTLING"\n{MEANING}', "did you mean SES_THROTTLING"),
        (f'name = "a"\ncode = "SES_THROTLING"\n{MEANING}', "verdicts[1].code = 'SES_THROTLING'"),
        (f'name = "a"\nprovider = "sess"\n{MEANING}', "verdicts[1].provider = 'sess'"),
        (
            f'name = "a"\nprovider = "ses"\ncode = "550"\n{MEANING}',
            "should be a code that answers of ses have",
        ),
        (
            f'name = "a"\nprovider = "resend"\nstage = "rcpt"\n{MEANING}',
            "answers of resend have none",
        ),
        (f'name = "a"\nenhanced = "5.7"\n{MEANING}', "verdicts[1].enhanced = '5.7'"),
        (f'name = "a"\ncode = "550"\nwhen = "now"\n{MEANING}', "verdicts[1].when = 'now'"),
        (f'name = "a"\ncode = "550"\nwhen = "now"\n{MEANING}', "it has name, provider, stage, mx"),
        (f'name = "A b"\ncode = "550"\n{MEANING}', "should be 1 to 40 small letters, digits"),
        (f'name = "a"\nenhanced = "5.7"\n{MEANING}', "should be an enhanced code such as 5.7.1"),
        (f'name = "a"\nprovider = "noop"\n{MEANING}', "one of sandbox, smtp, ses, resend"),
        ('name = "a"\ncode = "550"\nretryable = true\nscope = "message"', "verdicts[1].category"),
        ('name = "a"\ncode = "550"\nretryable = true\nscope = "message"', ": is missing"),
        (
            'name = "a"\ncode = "1"\ncategory = "BAD"\nretryable = "x"\nscope = "y"',
            "'PERMANENT_ERROR'",
        ),
        (
            'name = "a"\ncode = "1"\ncategory = "BAD"\nretryable = "x"\nscope = "y"',
            "verdicts[1].retryable = 'x'",
        ),
        (f'name = "a"\ncode = "1"\n{MEANING}[[verdicts]]\nname = "a"', "names that differ: a"),
    ],
)
def test_invalid_rule_is_refused_at_start(tmp_path: Path, table: str, says: str) -> None:
    """The error names the rule, its origin, and what is allowed."""
    with pytest.raises(ConfigError, match=re.escape(says)) as told:
        own_rules(tmp_path, f"[[verdicts]]\n{table}")

    assert "carteiro.toml" in str(told.value)


@pytest.mark.parametrize("text", ["verdicts = 3", 'verdicts = ["x"]', 'verdicts = "["'])
def test_value_that_is_not_a_list_of_tables_is_refused(tmp_path: Path, text: str) -> None:
    """The error shows the format."""
    with pytest.raises(ConfigError, match=r"should be \[\[verdicts\]\] tables"):
        own_rules(tmp_path, text)


def test_missing_bracket_is_reported(tmp_path: Path) -> None:
    """Otherwise its keys would be unknown settings."""
    with pytest.raises(ConfigError, match=r"write \[\[verdicts\]\], in two brackets"):
        own_rules(tmp_path, f'[verdicts]\nname = "a"\ncode = "550"\n{MEANING}')
