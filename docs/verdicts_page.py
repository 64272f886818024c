"""The reference page of verdicts: every answer of a provider that is known, and what becomes of it."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from carteiro.policy import classify
from carteiro.policy.doubt import may_leave_doubt
from carteiro.policy.rules import codes, http, systems, words
from carteiro.policy.rules.ruling import OUR_ACCOUNT, Ruling
from carteiro.policy.rules.words import TextRule
from carteiro.policy.stage import SESSION, Stage
from carteiro.providers.resend import rules as resend
from carteiro.providers.ses import rules as ses

_HEADING = (
    "| rule | words such as | category | tried again | whose fault | suppress |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)
_DOUBT = """\
Where *tried again* says *in doubt*, its *yes* holds before the hand-over alone. After it such an answer does not
say what became of the message, nor does silence: it is [in doubt](../explanation/in-doubt.md), sent again only as
its `delivery` or a replay allows, and never through another provider. Whatever SES or Resend say with a status of
the 500s, or with 408, counts so, but for names by which SES itself says that it did not do it, as
`ServiceUnavailable`. A reply of SMTP is always an answer.
"""
_NOBODY = f"""\
An address is suppressed for good (`hard`) on a reply to RCPT alone, and only where code and words agree that there is
no such mailbox: the words are those of a rule whose *suppress* is `hard`; the code is
{", ".join(f"`{code}`" for code in sorted(codes.MAILBOX_CODES))} without an enhanced code (or with `5.0.0`), or any 5xx
with {", ".join(f"`{code}`" for code in sorted(codes.MAILBOX_ENHANCED))}; and no other cause is named, as by
*policy*, *spam* or *sender*. Everything else counts as a soft bounce: the same words after the content, a domain that
does not exist, `Mailbox unavailable`. What SES and Resend report later as a permanent bounce suppresses for good.
"""
_BRAZIL = """\
Documents with the replies themselves were found for Titan and Zoho. UOL (for BOL, too) publishes whom it refuses, but
not in which words, and Locaweb which senders its relay takes; of its replies only what people report was found. For
Terra, KingHost, iG and Globo none were found. What they say, in Portuguese or English, is read by the words of anybody.
"""
_MOST_PHRASES = 6  # a rule is known by a few of its words; the code has them all


def verdicts_page(note: str) -> str:
    """Every rule with its category, whether it is tried again, whose fault it is, and what it says of the recipient."""
    return (
        f"# Error and verdict\n\n{note}\n"
        "What a provider answers is classified once, into `code`, `originalCode`, `category`, `retryable`, `scope`\n"
        "(whose fault it is), `reason` and `rule`. `carteiro classify` explains any answer. *Suppress* is what it\n"
        "says about writing to the recipient again: `hard` where nobody is there, `soft` where it only counts.\n"
        "A breaker may open only on what is the `provider`'s, and `QUOTA_ERROR` of a `provider` slows the shared send\n"
        "rate. [How to add rules of your own](../how-to/judge-answers-yourself.md).\n\n"
        f"## In doubt\n\n{_DOUBT}\n"
        f"## The order of decision\n\n{_order()}\n"
        "A reply that begins with 4, or whose enhanced code does, is always tried again: words only tell whose fault\n"
        "it is. Before any recipient every answer is the provider's: at `auth` every refusal is our account's; before\n"
        f"the first mail ({_session()}) every answer may pass; at `mail` a refusal is\n"
        "permanent with this provider, and the next of the route is tried. No breaker opens on what is said to `mail`\n"
        "of one sender or one message. After `data` a hint or a bare code is the message's. The rule's name ends in\n"
        "the stage, where that is known: `smtp.code.550@mail`.\n\n"
        f"## Nobody there\n\n{_NOBODY}\n"
        f"## Words of a system\n\n{''.join(_system(each) for each in systems.SYSTEMS)}"
        f"### Receivers in Brazil\n\n{_BRAZIL}\n"
        "## Words of anybody\n\nThe first rule whose words are found decides. Those of the second table are hints: a\n"
        "specific enhanced code comes before them.\n\n"
        f"{_texts('text', [each for each in words.TEXT_RULES if each.name not in words.HINTS])}\n"
        f"{_texts('text', [each for each in words.TEXT_RULES if each.name in words.HINTS])}\n"
        f"## Enhanced codes\n\n{_table('enhanced code', codes.ENHANCED)}\n"
        f"## What is left\n\n{_table('open enhanced code', codes.OPEN_ENHANCED)}\n"
        "A refusal by policy (`5.7`) without words that are known is about whom it answers; the rule is\n"
        "`smtp.policy.` and the stage.\n\n"
        f"{_table('`5.7` at stage', codes.POLICY_AT)}\n"
        f"{_table('class and subject', codes.SUBJECTS)}\n"
        f"{_table('code', codes.CODES)}\n{_table('code at stage', _at_stages())}\n{_table('class', codes.CLASSES)}\n"
        f"Codes about our login, before all others: {', '.join(f'`{code}`' for code in sorted(codes.ACCOUNT_CODES))}:\n"
        f"`{OUR_ACCOUNT.category}`, {OUR_ACCOUNT.scope}.\n\n"
        "## SES\n\nA code is `SES_` and the name in capitals, but for "
        f"{', '.join(f'`{name}`: `{code}`' for name, code in ses.CODES.items())}.\n\n"
        f"{_table('name', ses.NAMES | ses.COMMON_NAMES, 'ses.')}\n"
        "An answer without a name, as a proxy gives it, has its HTTP status for one; others may pass.\n\n"
        f"{_table('status', ses.STATUSES | _classes(ses.STATUS_CLASSES), 'ses.status.')}\n"
        "The words of some errors say more than their names. The category of an error stays the name's where programs\n"
        "go by it: a `MessageRejected` is a `PERMANENT_ERROR`, whatever it says. By SMTP, where SES gives no name, an\n"
        "address that is not verified is the `CONFIGURATION_ERROR` that it is with every relay; the fault is the\n"
        "sender's in both.\n\n"
        f"{_details()}\n"
        "## Resend\n\nA code is `RESEND_` and the name in capitals. "
        "A name that is new is judged by its HTTP status.\n\n"
        f"{_table('name', resend.NAMES, 'resend.')}\n"
        f"{_table(f'name, with status {resend.FORBIDDEN}', resend.FORBIDDEN_NAMES)}\n"
        f"{_table('status', _statuses(resend.STATUSES, resend.STATUS_CLASSES), 'resend.status.')}\n"
        "An answer without any name is a proxy's, or comes from a wrong address, and may pass.\n\n"
        f"{_table('status', _statuses(http.STATUSES, http.STATUS_CLASSES), 'resend.status.')}\n"
        "## No answer\n\nWhoever was asked: nobody was reached, the connection broke, or the time ran out.\n\n"
        f"{_table('rule', _silence())}"
    )


def _order() -> str:
    """The numbered list of the module that decides."""
    text = inspect.cleandoc(classify.__doc__ or "")
    listed = text[text.index("1. ") :].replace("`rules.", "`policy.rules.")
    return f"{listed.replace('`own_rules`', '[your own rules](../how-to/judge-answers-yourself.md)')}\n"


def _at_stages() -> dict[str, Ruling]:
    return {f"{code} at {stage}": ruling for (code, stage), ruling in codes.CODES_AT.items()}


def _session() -> str:
    return ", ".join(f"`{stage}`" for stage in Stage if stage in SESSION)


def _details() -> str:
    rows = "".join(
        f"| `ses.{name}.{each.name}` | {_some(each.phrases)} | {_cells(each.ruling)} |\n"
        for name, rules in ses.DETAILS.items()
        for each in rules
    )
    return f"{_HEADING}{rows}"


def _statuses(known: Mapping[int, Ruling], classes: Mapping[int, Ruling]) -> dict[str, Ruling]:
    return {str(status): ruling for status, ruling in known.items()} | _classes(classes)


def _classes(classes: Mapping[Any, Ruling]) -> dict[str, Ruling]:
    return {f"other {each}xx": ruling for each, ruling in classes.items()}


def _system(system: words.System) -> str:
    hosts = ", ".join(f"`{host}`" for host in system.hosts)
    return f"### {system.name}\n\nHosts: {hosts}.\n\n{_texts(system.name, system.rules)}\n"


def _texts(prefix: str, rules: Iterable[TextRule]) -> str:
    rows = "".join(
        f"| `smtp.{prefix}.{each.name}` | {_some(each.phrases)} | {_cells(each.ruling)} |\n"
        for each in rules
    )
    return f"{_HEADING}{rows}"


def _some(phrases: tuple[str, ...]) -> str:
    told = ", ".join(phrases[:_MOST_PHRASES])
    return f"{told}, …" if len(phrases) > _MOST_PHRASES else told


def _silence() -> dict[str, Ruling]:
    failures = (classify.timeout("smtp"), classify.network("Connection lost"))
    return {
        each.rule: Ruling(each.category, retryable=each.retryable, scope=each.scope)
        for each in failures
    }


def _table(heading: str, table: Mapping[str, Ruling], rules: str = "") -> str:
    """Their rules begin so, where that tells whether one leaves a doubt."""
    rows = "".join(
        f"| `{name}` | {_cells(ruling, _rule(rules, name))} |\n" for name, ruling in table.items()
    )
    return (
        f"| {heading} | category | tried again | whose fault | suppress |\n"
        f"| --- | --- | --- | --- | --- |\n{rows}"
    )


def _rule(rules: str, name: str) -> str:
    """A whole class of statuses is as the first of it."""
    return f"{rules}{name.removeprefix('other ').replace('xx', '00')}"


def _cells(ruling: Ruling, rule: str = "") -> str:
    again = "yes" if ruling.retryable else "no"
    again = f"{again}; [in doubt](#in-doubt)" if may_leave_doubt(rule) else again
    return f"`{ruling.category}` | {again} | {ruling.scope} | {ruling.suppress}"
