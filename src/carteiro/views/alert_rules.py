"""The rules of alerts for Prometheus, from their definitions."""

from collections.abc import Iterable
from datetime import timedelta

from carteiro.model.alerts import AlertDefinition

_HEAD = """\
# Alerts of e-mail and tasks, for Prometheus: rule_files: [carteiro.rules.yaml]. Written by `make docs` from
# src/carteiro/policy/alerts.py, with the default thresholds. `promtool test rules` runs the tests in
# carteiro.rules.test.yaml. Runbooks are paths in the repository.
groups:
  - name: carteiro
    rules:
"""


def rules(definitions: Iterable[AlertDefinition]) -> str:
    """The file of rules."""
    return _HEAD + "\n".join(map(_rule, definitions))


def _rule(definition: AlertDefinition) -> str:
    given = f" and {definition.given}" if definition.given else ""
    lasts = f"        for: {_seconds(definition.lasts)}\n" if definition.lasts else ""
    action = definition.action.replace("TENANT", "{{ $labels.tenant }}")
    action = action.replace("TEMPLATE", "{{ $labels.template }}")
    return (
        f"      - alert: {definition.name}\n"
        f"        expr: '{definition.expression} > {definition.threshold:g}{given}'\n"
        f"{lasts}"
        f"        labels: {{ severity: {definition.severity} }}\n"
        "        annotations:\n"
        f'          summary: "{definition.summary}"\n'
        f'          action: "{action}"\n'
        f"          runbook: {definition.runbook}\n"
    )


def _seconds(lasts: timedelta) -> str:
    return f"{lasts.total_seconds():g}s"
