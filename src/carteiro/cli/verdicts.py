"""``carteiro verdicts``: your own rules, as history suggests them."""

import json
from typing import Any

from pydantic import ValidationError

from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.histories import in_days, share_document, shares
from carteiro.cli.printing import note
from carteiro.config.sections import VerdictSettings
from carteiro.model import NOTICES
from carteiro.policy.history import MOST_DAYS
from carteiro.policy.own_rules import OwnRule
from carteiro.policy.suggestions import LEAST, Suggestion, suggestion_of

app = DeskCommands("Find your own rules for answers of providers.")


@app.callback()
def verdicts() -> None:
    """Find your own rules for answers of providers."""


@app.at_a_desk()
async def suggest(desk: Desk) -> None:
    """Print rules where history contradicts the verdicts: vain retries, and dead letters that a redrive sends."""
    if desk.settings.retry.learn == "off":
        origin = desk.settings.origin("retry.learn")
        raise NotNow(f'retry.learn = "off" (from {origin}): set it to "suggest" or "apply"')
    tenants = (await desk.backend.tenants.list(limit=3)).rows
    is_only = len([each for each in tenants if each.id != NOTICES]) == 1
    histories = await desk.backend.failures.histories(least=LEAST)
    found = [suggestion_of(each, is_only_tenant=is_only) for each in histories]
    fit = sorted((each for each in found if each is not None and _fits(each)), key=_by_count)
    if desk.out.is_for_programs:
        desk.out.rows(fit, (), _document)
    for each in fit:
        desk.out.text(_toml(each))
    note(_advice(len(fit)))


def _by_count(each: Suggestion) -> tuple[int, str]:
    return -each.count, each.group.id


def _advice(count: int) -> str:
    if not count:
        return f"No rule is suggested: in {MOST_DAYS} days, no verdict is contradicted by at least {LEAST} messages."
    return (
        "Read each rule, and add it to carteiro.toml; carteiro classify --dry-run shows what it would change. "
        "Nothing was changed."
    )


def _conditions(rule: OwnRule) -> dict[str, Any]:
    """The keys of a rule in the settings, in the order of the docs."""
    given = {
        "name": rule.name,
        "provider": rule.provider,
        "stage": rule.stage.value if rule.stage else "",
        "code": rule.code,
        "text": rule.text.pattern if rule.text else "",
        "category": rule.category.value,
        "retryable": rule.retryable,
        "scope": rule.scope.value,
    }
    return {name: each for name, each in given.items() if each != ""}


def _fits(each: Suggestion) -> bool:
    """True if the settings take the rule: a task, or a provider that is gone, has none."""
    try:
        VerdictSettings(**_conditions(each.rule))
    except ValidationError:
        return False
    return True


def _document(each: Suggestion) -> dict[str, Any]:
    evidence = share_document(each.count, each.sent) | {
        "wereRedriven": each.were_redriven,
        "tenants": each.tenants,
        "withoutLargestTenant": each.others,
    }
    return {"rule": _conditions(each.rule), "group": each.group.id, "evidence": evidence}


def _toml(each: Suggestion) -> str:
    tried = "redriven" if each.were_redriven else "tried again"
    lines = [
        f"# Failure group {each.group.id}, rule {each.group.rule}: {each.sent:,} of {each.count:,} messages that were",
        f"# {tried} within {in_days(each.days)} were sent ({shares(each.count, each.sent)}). {_spread(each)}",
        "[[verdicts]]",
        *(f"{name} = {json.dumps(value)}" for name, value in _conditions(each.rule).items()),
    ]
    return "\n".join(lines) + "\n\n"


def _spread(each: Suggestion) -> str:
    if each.tenants == 1:
        return "They are of one tenant."
    return f"They are of {each.tenants:,} tenants; {each.others:,} are not of the largest one."
