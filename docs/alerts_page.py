"""The reference page of alerts, and the rules for Prometheus."""

from carteiro import config
from carteiro.cli.options import in_words
from carteiro.model.alerts import About, AlertDefinition, Unit
from carteiro.policy.alerts import MOST_SUBJECTS, definitions
from carteiro.ports.table_queue import NEWEST_ROWS
from carteiro.views.alert_rules import rules

_ABOUT = {
    About.INSTALLATION: "the installation",
    About.TENANT: "a tenant",
    About.TEMPLATE: "a template of a tenant",
    About.PROVIDER: "a provider",
}


def default_alerts() -> list[AlertDefinition]:
    """Every alert, with its default threshold."""
    return definitions(config.load(environ={}).alerts.thresholds)


def rules_file() -> str:
    """The rules for Prometheus."""
    return rules(default_alerts())


def alerts_page(note: str) -> str:
    """Every alert: condition, threshold, window, duration, action and runbook."""
    alerts = default_alerts()
    rows = "".join(
        f"| [{each.name}](#{each.name.lower()}) | {each.severity} | {_threshold(each)} | {_span(each)} |\n"
        for each in alerts
    )
    kept = config.load(environ={}).rollups.max_tenants
    return (
        f"# Alerts\n\n{note}\n"
        "An alert fires when its value has been above its threshold for its duration. Thresholds are\n"
        "[settings](settings.md#alerts). Carteiro evaluates these conditions itself, on one process and from the\n"
        "store alone. The same alerts are rules for Prometheus in\n"
        "[`deploy/prometheus`](../../deploy/prometheus/carteiro.rules.yaml), with the default thresholds: use either.\n"
        "The ticket lane has [its own](../how-to/run-the-ticket-lane.md#watch-it).\n\n"
        "| alert | severity | fires above | window, duration |\n| --- | --- | --- | --- |\n"
        f"{rows}"
        f"{''.join(_section(each) for each in alerts)}"
        "\n## Limits\n\n"
        "- Figures come from [minutes](kpis.md), which upkeep adds up every 10 seconds. An hour is the current minute\n"
        "  and the 60 before.\n"
        f"- A past minute keeps the {kept:,} templates with the most messages\n"
        "  ([`rollups.max_tenants`](settings.md#rollupsmax_tenants)); `TemplateFails` does not see the others.\n"
        "  Totals are complete, and so are the dead letters of every tenant.\n"
        f"- An alert has at most {MOST_SUBJECTS:,} subjects at a time: those with the highest values.\n"
        f"- `TableQueuePending` looks at the newest {NEWEST_ROWS:,} e-mails of the table queue.\n"
        "- Workers report open circuits and the queue in Redis when they change, and renew this once a minute.\n"
        "  The report ends with the process, or three minutes after it was killed.\n"
        "- While no process reaches the queue in Redis, alerts about its memory and refusals keep their state.\n"
        "- Only a process without maintenance can detect `SchedulerSilent`: `carteiro api`, or Prometheus.\n"
    )


def _section(alert: AlertDefinition) -> str:
    page, _, heading = alert.runbook.removeprefix("docs/").partition("#")
    link = f"../{page}" + (f"#{heading}" if heading else "")
    key = alert.setting
    setting = f" Setting [`alerts.{key}`](settings.md#alerts{key})." if key else ""
    return (
        f"\n## {alert.name}\n\n{alert.condition} It is about {_ABOUT[alert.about]}.{setting}\n\n"
        f"{alert.action[0].upper()}{alert.action[1:]}. Runbook: [{link.rpartition('/')[2]}]({link}).\n"
    )


def _threshold(alert: AlertDefinition) -> str:
    match alert.unit:
        case Unit.SHARE:
            return f"{alert.threshold:.0%}"
        case Unit.SECONDS:
            return f"{alert.threshold:g} s"
        case Unit.COUNT:
            return f"{alert.threshold:g}"


def _span(alert: AlertDefinition) -> str:
    told = [in_words(alert.window)] if alert.window else ["now"]
    return ", ".join([*told, *([f"for {in_words(alert.lasts)}"] if alert.lasts else [])])
