"""The reference page of key figures and of the counters behind them."""

from collections import Counter
from collections.abc import Mapping

from carteiro import config
from carteiro.cli.options import in_words
from carteiro.model import NOTICES
from carteiro.model.figures import Kpi
from carteiro.policy.kpis import kpis
from carteiro.policy.rollups import DELAYS, MOST_ATTEMPTS, MOST_CODES, MOST_TEMPLATES
from carteiro.views.kpis import Range

_MEANINGS: Mapping[str, str] = {
    "final_delivery": "messages sent, of those that ended as sent or failed",
    "mean_time_to_delivery": "time from accept, or from the time a message was scheduled for, to sent",
    "recovery": "messages sent by a later attempt, of those whose first attempt failed and that ended",
    "finally_failed": "messages that failed or expired, of those that ended as sent or failed",
    "mean_time_between_attempts": "time from the end of a failed attempt to the begin of the next one",
}


def kpis_page(note: str) -> str:
    """Every key figure with its goal, and the bounds of what is kept."""
    rows = "".join(
        f"| `{each.name}` | {_goal(each)} | {_MEANINGS[each.name]} |\n" for each in kpis(Counter())
    )
    kept = config.load(environ={}).rollups
    ranges = ", ".join(f"`{each.value}`" for each in Range)
    bounds = ", ".join(f"{bound / 1000:g}" for bound in DELAYS)
    return (
        f"# Key figures\n\n{note}\n"
        "`carteiro kpis [--tenant NAME] [--range RANGE] [--json]` and `GET /admin/v1/kpis` show the figures of all\n"
        "tenants or of one, `GET /v1/kpis` a tenant's own. Ranges, each up to now: "
        f"{ranges}. Up to a day is counted\nby minute, more by hour.\n\n"
        "| key figure | goal | meaning |\n| --- | --- | --- |\n"
        f"{rows}"
        "| success by attempt | | attempts that sent their message, of all with this number; from "
        f"{MOST_ATTEMPTS} on together |\n\n"
        "Each figure has the number of messages, or of pauses, that it is about. If there are none it is `null`, and\n"
        "`no data` on a terminal: it is neither met nor missed. Cancelled messages are in no key figure,\n"
        f"and Carteiro's own notices, of the tenant `{NOTICES}`, only in those of that tenant.\n\n"
        "The answer has the numbers behind them, too: messages accepted, sent, failed, cancelled and redriven;\n"
        "retries; failed messages and failed attempts, by code; the mean wait until the first attempt. Those of all\n"
        "tenants are split by provider, with the most jobs in flight and the longest age of the queue, seen once a\n"
        "minute; those of one tenant by template type. Times to delivery are counted by slot; the bounds in seconds:\n"
        f"{bounds}.\n\n"
        "## Exactness\n\n"
        "- A store counts in the transaction that accepts or settles: after any crash the figures are those of the\n"
        "  messages, and a repeated or late result is not counted again.\n"
        "- A dead message that is redriven, or turns out to be sent, has not failed: it is taken back from the minute\n"
        "  and the hour in which it failed.\n"
        "- For tasks, the time between attempts is the planned one: they do not record the begin of an attempt.\n"
        "- Pruning messages changes no figure. Erasing a tenant deletes its figures; the totals stay.\n\n"
        "## Bounds\n\n"
        f"- Minutes are kept for {in_words(kept.minutes)}, hours for {in_words(kept.hours)}:\n"
        "  [`[rollups]`](settings.md#rollups).\n"
        f"- A past minute or hour keeps the {kept.max_tenants} tenants with the most messages, and as many templates.\n"
        "  The others are in the totals only, and `carteiro kpis --tenant` does not have them for that time.\n"
        f"- An answer has the {MOST_TEMPLATES} template types with the most messages.\n"
        f"- Of error codes, the {MOST_CODES} most frequent are kept by name, the others as `other`.\n\n"
        "Why it is built this way: [decision 0085](../explanation/decisions/0085-figures-from-notes.md).\n"
    )


def _goal(kpi: Kpi) -> str:
    if kpi.goal is None:
        return ""
    goal = f"{100 * kpi.goal:g} %" if kpi.unit == "share" else f"{kpi.goal / 60:g} min"
    return f"{'>' if kpi.goal_is == 'above' else '<'} {goal}"
