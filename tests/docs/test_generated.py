"""Generated pages are up to date with the code."""

from dataclasses import fields

import pytest

import generate
from carteiro import config
from carteiro.model import TRANSITIONS
from carteiro.policy.rules import words
from carteiro.policy.rules.systems import SYSTEMS
from carteiro.ports import Features
from carteiro.providers.sandbox import provider as sandbox
from carteiro.providers.ses import rules as ses
from support.set_ups import SET_UPS


@pytest.mark.parametrize("name", generate.PAGES)
def test_generated_page_is_up_to_date(name: str) -> None:
    """Lists in the docs come from code; `make docs` writes them."""
    assert (generate.REFERENCE / name).read_text("utf-8") == generate.PAGES[name]()


def test_states_page_draws_every_transition() -> None:
    """The diagram is the table of transitions, no more and no less."""
    page = generate.states_page()

    drawn = {tuple(line.split(" --> ")) for line in page.splitlines() if " --> " in line}
    inner = {(start.strip(), end) for start, end in drawn if "[*]" not in {start.strip(), end}}
    assert inner == {(str(start), str(end)) for start in TRANSITIONS for end in TRANSITIONS[start]}


@pytest.mark.parametrize("key", config.setting_keys())
def test_settings_page_has_every_setting(key: str) -> None:
    assert f"### `{key}`\n" in generate.settings_page()


@pytest.mark.parametrize("table", sorted(config.FREE_TABLES))
def test_settings_page_documents_free_tables(table: str) -> None:
    """Also those that are empty by default."""
    _, _, section = generate.settings_page().partition(f"\n## [{table}]\n")
    text, _, _ = section.partition("\n## ")

    assert "line for each" in text
    assert f"`{config.env_name(table)}_" in text


def test_verdicts_page_has_every_rule() -> None:
    """A verdict names its rule, so that people can look it up: also the rules for texts of SES."""
    page = generate.PAGES["verdicts.md"]()
    named = [f"smtp.text.{each.name}" for each in words.TEXT_RULES]
    named += [f"smtp.{system.name}.{each.name}" for system in SYSTEMS for each in system.rules]
    named += [f"ses.{name}.{each.name}" for name, rules in ses.DETAILS.items() for each in rules]

    assert [name for name in named if f"| `{name}` |" not in page] == []


def test_path_page_has_every_stage_in_its_order() -> None:
    """The stages are the files of the path, and their names sort in the order of travel."""
    headings = [line for line in generate.path_page().splitlines() if line.startswith("## ")]

    assert [heading[4:].partition("]")[0] for heading in headings] == generate.stage_names()


@pytest.mark.parametrize("local", sandbox.REPLIES)
def test_sandbox_page_has_every_address(local: str) -> None:
    """Each special address is documented with its reply."""
    assert f"`{local}@{sandbox.DOMAIN}` | {sandbox.REPLIES[local]} |" in generate.sandbox_page()


def test_providers_page_has_every_provider_and_every_feature() -> None:
    """A provider is a column; a feature is a row."""
    page = generate.providers_page()

    assert {f"`{name}`" for name in config.specs()} <= set(page.split())
    assert list(generate._FEATURES) == [field.name for field in fields(Features)]
    assert page.count("\n| ") == len(fields(Features)) + 2


def test_backends_page_names_every_store() -> None:
    """Every store of the contract suite keeps every promise of the page."""
    page = generate.backends_page()

    assert [each.name for each in SET_UPS if f"`{each.name}`" not in page] == []


@pytest.mark.parametrize(
    "name", ["email_outbox", "email_logs", "email_events", "recipients", "dlq"]
)
def test_public_relations_can_be_queried(name: str) -> None:
    """These relations are public: they stay, and their page lists their columns."""
    columns = generate.relations()[name]

    assert columns
    assert f"\n## {name}\n" in generate.sql_page()
