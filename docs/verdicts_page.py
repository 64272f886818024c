"""The reference page of verdicts: every answer of a provider that is known, and what becomes of it."""

import inspect
import re
from collections.abc import Iterable, Mapping

from carteiro.policy import classify
from carteiro.policy.doubt import may_leave_doubt
from carteiro.policy.rules import codes, http, systems, words
from carteiro.policy.rules.ruling import OUR_ACCOUNT, Ruling
from carteiro.policy.rules.words import TextRule
from carteiro.policy.stage import SESSION, Stage
from carteiro.providers.resend import rules as resend
from carteiro.providers.ses import rules as ses

_HEADING = (
    "| rule | phrases such as | category | retried | scope | suppress |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)
_DOUBT = """\
Where *retried* says *in doubt*, the *yes* applies only before the hand-over. After it, such an answer, or none,
leaves the message [in doubt](../explanation/in-doubt.md): it is sent again only as
its `delivery` or a replay allows, and never through another provider. Every 5xx or 408 of SES or Resend
is such an answer, except errors by which SES reports that it did nothing, such as
`ServiceUnavailable`. An SMTP reply always ends the doubt.
"""
_NOBODY = f"""\
An address is suppressed permanently (`hard`) only on a reply to RCPT whose code and text agree that there is
no such mailbox: the text matches a rule whose *suppress* is `hard`; the code is
{", ".join(f"`{code}`" for code in sorted(codes.MAILBOX_CODES))} without an enhanced code (or with `5.0.0`), or any 5xx
with {", ".join(f"`{code}`" for code in sorted(codes.MAILBOX_ENHANCED))}; and nothing else is said: each word
is one that such replies use. Everything else counts as a soft bounce: the same words after the content, a domain that
does not exist, `Mailbox unavailable`. A permanent bounce that SES or Resend reports later suppresses permanently.
"""
_BRAZIL = """\
Titan and Zoho document their replies. UOL (also for BOL) documents which mail it rejects, but
not the texts. Locaweb documents the senders that its relay accepts; its replies are known only from reports. For
Terra, KingHost, iG and Globo no documents were found. Their texts, in Portuguese or English, match the general rules.
"""
_MOST_PHRASES = 6  # enough to recognise a rule; the code has all phrases


def verdicts_page(note: str) -> str:
    """Every rule with its category, its retry, its scope and its effect on the recipient."""
    return (
        f"# Error and verdict\n\n{note}\n"
        "Each provider answer is classified once, into `code`, `originalCode`, `category`, `retryable`, `scope`\n"
        "(the cause), `reason` and `rule`. `carteiro classify` explains any answer. *Suppress* is its\n"
        "effect on the recipient: `hard` if the mailbox does not exist, `soft` if it only counts.\n"
        "A circuit breaker opens only on failures with scope `provider`, and a `QUOTA_ERROR` with that scope "
        "slows the shared\n"
        "rate. [How to add your own rules](../how-to/judge-answers-yourself.md).\n\n"
        f"## In doubt\n\n{_DOUBT}\n"
        f"## The order of decision\n\n{_order()}\n"
        "A reply that begins with 4, or whose enhanced code does, is always retried: the text only gives the scope.\n"
        "So is one that calls itself temporary.\n"
        "Before RCPT every answer has the scope `provider`: at `auth` every rejection is about our account; before\n"
        f"the first mail ({_session()}) every failure may be temporary; at `mail` a rejection is\n"
        "permanent with this provider, and the next one of the route is tried. No circuit opens "
        "on a rejection at `mail`\n"
        "of one sender or one message. After `data` a hint or a bare code has the scope `message`. The rule's name "
        "ends with\n"
        "the stage, if known: `smtp.code.550@mail`.\n\n"
        f"## Mailbox does not exist\n\n{_NOBODY}\n"
        f"## Phrases of a system\n\n{''.join(_system(each) for each in systems.SYSTEMS)}"
        f"### Receivers in Brazil\n\n{_BRAZIL}\n"
        "## Phrases of any system\n\nThe first rule whose phrases are found decides. Those of the second table\n"
        "are hints: a specific enhanced code comes before them.\n\n"
        f"{_texts('text', [each for each in words.TEXT_RULES if each.name not in words.HINTS])}\n"
        f"{_texts('text', [each for each in words.TEXT_RULES if each.name in words.HINTS])}\n"
        f"## Enhanced codes\n\n{_table('enhanced code', codes.ENHANCED)}\n"
        f"## The rest\n\n{_table('generic enhanced code', codes.OPEN_ENHANCED)}\n"
        "A refusal by policy (`5.7`) without a known phrase is judged by its stage; the rule is\n"
        "`smtp.policy.` and the stage.\n\n"
        f"{_table('`5.7` at stage', codes.POLICY_AT)}\n"
        f"{_table('class and subject', codes.SUBJECTS)}\n"
        f"{_table('code', codes.CODES)}\n{_table('code at stage', _at_stages())}\n{_table('class', codes.CLASSES)}\n"
        f"Codes about our login, before all others: {', '.join(f'`{code}`' for code in sorted(codes.ACCOUNT_CODES))}:\n"
        f"`{OUR_ACCOUNT.category}`, {OUR_ACCOUNT.scope}.\n\n"
        "## SES\n\nA code is `SES_` and the name in capitals, except "
        f"{', '.join(f'`{name}`: `{code}`' for name, code in ses.CODES.items())}.\n\n"
        f"{_table('name', ses.NAMES | ses.COMMON_NAMES, 'ses.')}\n"
        "An answer without a name, as of a proxy, is judged by its HTTP status; an unknown status is retried.\n\n"
        f"{_table('status', ses.STATUSES | _classes(ses.STATUS_CLASSES), 'ses.status.')}\n"
        "The text of some errors says more than their names. The category follows the name, as programs rely on it:\n"
        "a `MessageRejected` is always a `PERMANENT_ERROR`. By SMTP, where SES gives no name, an\n"
        "unverified address is a `CONFIGURATION_ERROR`, as with every relay; the scope is the sender's\n"
        "in both.\n\n"
        f"{_details()}\n"
        "## Resend\n\nA code is `RESEND_` and the name in capitals. "
        "An unknown name is judged by its HTTP status.\n\n"
        f"{_table('name', resend.NAMES, 'resend.')}\n"
        f"{_table(f'name, with status {resend.FORBIDDEN}', resend.FORBIDDEN_NAMES)}\n"
        f"{_table('status', resend.STATUSES | _classes(resend.STATUS_CLASSES), 'resend.status.')}\n"
        "An answer without any name comes from a proxy or a wrong address.\n\n"
        f"{_table('status', http.STATUSES | _classes(http.STATUS_CLASSES), 'resend.status.')}\n"
        "## No answer\n\nFor every provider: it was unreachable, the connection broke, or the call timed out.\n\n"
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


def _classes(classes: Mapping[str, Ruling]) -> dict[str, Ruling]:
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
        f"| `{name}` | {_cells(table[name], _rule(rules, name))} |\n"
        for name in sorted(table, key=_numbers_and_name)
    )
    return (
        f"| {heading} | category | retried | scope | suppress |\n"
        f"| --- | --- | --- | --- | --- |\n{rows}"
    )


def _numbers_and_name(name: str) -> tuple[list[int], str]:
    """The key by which codes are sorted as numbers, and names by letter."""
    return [int(number) for number in re.findall(r"\d+", name)], name


def _rule(rules: str, name: str) -> str:
    """A whole class of statuses is as the first of it."""
    return f"{rules}{name.removeprefix('other ').replace('xx', '00')}"


def _cells(ruling: Ruling, rule: str = "") -> str:
    again = "yes" if ruling.retryable else "no"
    again = f"{again}; [in doubt](#in-doubt)" if may_leave_doubt(rule) else again
    return f"`{ruling.category}` | {again} | {ruling.scope} | {ruling.suppress}"
