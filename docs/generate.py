"""Write the reference pages that come from code; with ``--check`` only say whether they are up to date."""

import importlib
import inspect
import re
import sqlite3
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args, get_type_hints

import typer

import carteiro.path
from alerts_page import alerts_page, rules_file
from api_page import api_page
from carteiro import cli, config
from carteiro.cli.exit_codes import MEANINGS, ExitCode
from carteiro.cli.options import in_words
from carteiro.model import FINISHED, TRANSITIONS, ZERO, State
from carteiro.observability.metrics import definitions
from carteiro.observability.metrics.labels import LAST_ATTEMPT, MOST_CODES, attempt_label
from carteiro.policy.retry import PRESETS, RetryPolicy, default_preset
from carteiro.ports import Backend, Features
from carteiro.providers.sandbox import provider as sandbox
from carteiro.stores.sqlite import opening
from carteiro.tickets.archive import metrics as archive_metrics
from carteiro.tickets.consume import metrics as ticket_metrics
from dashboards import DASHBOARDS, dashboard
from errors_page import errors_page
from kpis_page import kpis_page
from roles_page import roles_page
from verdicts_page import verdicts_page

REPOSITORY = Path(__file__).parents[1]
REFERENCE = REPOSITORY / "docs" / "reference"
TESTS = REPOSITORY / "tests"
NOTE = "<!-- Written by `make docs`; change the code it comes from. -->\n"

_MINUTE = timedelta(minutes=1)
_COMMENTED = re.compile(r"((?:^#.*\n)+)(\w+) = ", re.MULTILINE)


# --- states -----------------------------------------------------------------------------------


def states_page() -> str:
    """Every state, and where a message may go from it."""
    rows = "".join(
        f"| {state} | {_targets(state)} | {'yes' if state in FINISHED else ''} |\n"
        for state in State
    )
    arrows = "".join(
        f"    {state} --> {target}\n" for state in State for target in _sorted(TRANSITIONS[state])
    )
    ends = "".join(f"    {state} --> [*]\n" for state in State if state in FINISHED)
    return (
        f"# States of a message\n\n{NOTE}\n"
        "A message moves along these arrows and no others; each move and its event are written in\n"
        "one transaction. A later report of a provider is an event, not a state.\n\n"
        "| state | may become | finished |\n| --- | --- | --- |\n"
        f"{rows}\n"
        "```mermaid\nstateDiagram-v2\n"
        f"    [*] --> {State.ENQUEUED}\n{arrows}{ends}```\n"
    )


def _targets(state: State) -> str:
    return ", ".join(_sorted(TRANSITIONS[state]))


def _sorted(states: frozenset[State]) -> list[State]:
    order = list(State)
    return sorted(states, key=order.index)


# --- settings ---------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting with its default, what is allowed, its variable and its reason."""
    sections = "".join(_section(name, text) for name, text in config.default_sections().items())
    return (
        f"# Settings\n\n{NOTE}\n"
        "Later places win: the default file, then `carteiro.toml` (in the current directory, or\n"
        f"named by `--config` or `{config.ENV_FILE}`), then environment variables, then flags.\n"
        "`carteiro config show` prints each value and where it came from. Unknown keys are errors.\n"
        "Durations are whole milliseconds.\n"
        f"{sections}{_presets()}"
    )


def _presets() -> str:
    rows = "".join(_preset_row(name, policy) for name, policy in PRESETS.items())
    return (
        "\n## Retry presets\n\n"
        "Values of [`retry.preset`](#retrypreset), of a tenant and of a template. A message with a temporary\n"
        "failure is retried after these waits; after the last attempt it is a dead letter.\n"
        "If a relay is down for longer than a preset lasts, all due messages become dead letters. With\n"
        "[`retry.patient`](#retrypatient) the waits are longer for greylisting, full mailboxes "
        "and throttling destinations.\n\n"
        f"Default: `{default_preset('production')}` in production,"
        f" `{default_preset('development')}` in development.\n\n"
        "| preset | attempts | waits between them | lasts | each wait varies by |\n"
        "| --- | --- | --- | --- | --- |\n"
        f"{rows}"
    )


def _preset_row(name: str, policy: RetryPolicy) -> str:
    # The middle of the dice: the wait as it is before it is spread.
    waits = [policy.delay(failed, 0.5) for failed in range(1, policy.max_attempts)]
    told = ", ".join(in_words(wait) for wait in waits)
    lasts = sum(waits, ZERO)
    shown = in_words(lasts) if lasts >= _MINUTE else f"{lasts.total_seconds():g}s"
    return f"| `{name}` | {policy.max_attempts} | {told} | {shown} | {policy.jitter:.0%} |\n"


def _section(section: str, text: str) -> str:
    defaults = tomllib.loads(text)
    blocks = "".join(
        _setting(f"{section}.{name}" if section else name, defaults[name], comment)
        for comment, name in _COMMENTED.findall(text)
    )
    free = _free_table(section, text) if section in config.FREE_TABLES and not blocks else ""
    return f"\n## {f'[{section}]' if section else 'Top level'}\n{free}{blocks}"


def _free_table(section: str, text: str) -> str:
    """A table whose keys are the user's own, and which is empty until then."""
    variable = config.env_name(f"{section}.name")
    return f"\n{_reason(text)}\n\nDefault: none; variable `{variable}`, where `NAME` is the key.\n"


def _reason(comment: str) -> str:
    lines = (line for line in comment.splitlines() if line.startswith("#"))
    return " ".join(line.removeprefix("#").strip() for line in lines)


def _setting(key: str, default: object, comment: str) -> str:
    return (
        f"\n### `{key}`\n\n{_reason(comment)}\n\n"
        f"Default `{_as_toml(default)}`{_choices(key)}; variable `{config.env_name(key)}`.\n"
    )


def _as_toml(default: object) -> str:
    if isinstance(default, str):
        return f'"{default}"'
    return str(default).lower() if isinstance(default, bool) else str(default)


def _choices(key: str) -> str:
    """The values of a setting that offers a choice; others say in their reason what they take."""
    section, _, name = key.rpartition(".")
    whole = config.settings_type()
    model: Any = whole.model_fields[section].annotation if section else whole
    field = getattr(model, "model_fields", {}).get(name)
    arguments = get_args(field.annotation) if field else ()
    allowed = [f'`"{each}"`' for each in arguments if isinstance(each, str)]
    return f"; one of {', '.join(allowed)}" if allowed else ""


# --- the path -----------------------------------------------------------------------------------

_STAGE = re.compile(r"In: (.+?)\. Out: (.+?)\. (.+)", re.DOTALL)


def path_page() -> str:
    """The stages in their order, each from the docstring of its module."""
    stages = stage_names()
    arrows = " --> ".join(f"{name}([{name}])" for name in stages)
    return (
        f"# The path of an e-mail\n\n{NOTE}\n"
        "One file per stage in `src/carteiro/path/`; their names sort in the order of the stages.\n"
        "A task takes the same path: nothing is confirmed, and its attempts are declared only if it\n"
        "runs at most once.\n\n"
        f"```mermaid\nflowchart LR\n    {arrows}\n    settle -. retry .-> claim\n```\n"
        f"{''.join(_stage(name) for name in stages)}"
    )


def stage_names() -> list[str]:
    """The modules of the path, in the order of the stages."""
    folder = Path(carteiro.path.__path__[0])
    return sorted(file.stem for file in folder.glob("[a-z]*.py"))


def _stage(name: str) -> str:
    """One stage; its docstring must give input, output and the effect of a crash."""
    module = importlib.import_module(f"carteiro.path.{name}")
    title, _, body = inspect.cleandoc(module.__doc__ or "").replace("``", "`").partition("\n\n")
    told = _STAGE.fullmatch(" ".join(body.split()))
    if told is None:
        raise ValueError(
            f"the docstring of path/{name}.py needs: In: ... Out: ... and the effect of a crash"
        )
    comes_in, goes_out, killed = told.groups()
    return (
        f"\n## [{name}](../../src/carteiro/path/{name}.py)\n\n{title}\n\n"
        f"- **In**: {comes_in}.\n- **Out**: {goes_out}.\n- **Crash**: {killed}\n"
    )


# --- sandbox ------------------------------------------------------------------------------------


def sandbox_page() -> str:
    """Every address with a simulated result."""
    rows = "".join(
        f"| `{local}@{sandbox.DOMAIN}` | {reply} |\n" for local, reply in sandbox.REPLIES.items()
    )
    return (
        f"# Addresses of the sandbox\n\n{NOTE}\n"
        "The `sandbox` provider stores all mail in an inbox inside the store; nothing leaves\n"
        f"the machine. At `{sandbox.DOMAIN}` the local part selects the result. Mail to any other\n"
        "domain, and to any other local part, is accepted: a mistyped one simulates no error.\n\n"
        "| address | result |\n| --- | --- |\n"
        f"{rows}\n"
        "Words in capitals stand for a number. Attempts are counted over the whole life of a message:\n"
        "a redrive continues the count. The seed of `random` is a [setting](settings.md#sandboxseed).\n"
    )


# --- providers ----------------------------------------------------------------------------------

_FEATURES: Mapping[str, str] = {
    "is_remote": "is remote: `carteiro doctor` checks whether it can be used",
    "is_encrypted": "uses TLS with checked certificates",
    "names_stage": "reports the stage at which a mail was refused",
    "refuses_copies": "can refuse one copy and take the others",
    "is_relay": "forwards mail to others: any provider may report on it",
    "replays_for": "delivers a repeated call once, by its key, which ends a [doubt](../explanation/in-doubt.md)",
    "gives_evidence": "reports later what it took, so that a doubt can end without a call",
    "tells_rate": "reports its rate limit, which is not exceeded",
    "has_regions": "can be called in several regions",
    "keeps_mail": "keeps mails in the inbox, and sends none",
}


def providers_page() -> str:
    """Every provider, and what it can do."""
    specs = config.specs().values()
    names = " | ".join(f"`{each.name}`" for each in specs)
    rows = "".join(
        f"| {told} | {' | '.join(_can(each.features, name) for each in specs)} |\n"
        for name, told in _FEATURES.items()
    )
    return (
        f"# Providers and what they can do\n\n{NOTE}\n"
        "Each keeps the contract of [tests/contract/provider](../../tests/contract/provider): it reports the\n"
        "start of a hand-over before it, and its outcome. The provider in use is the setting\n"
        "[`provider`](settings.md#provider). See also [add a provider](../how-to/add-a-provider.md).\n\n"
        f"| | {names} |\n| --- |{' --- |' * len(specs)}\n{rows}"
    )


def _can(features: Features, name: str) -> str:
    given = getattr(features, name)
    if isinstance(given, timedelta):
        return in_words(given)
    return "yes" if given else ""


# --- backends -----------------------------------------------------------------------------------


class Promise(NamedTuple):
    """One promise of a port, and the folder of the tests that try it."""

    port: str
    name: str
    text: str
    folder: str


_FOLDER = re.compile(r"``tests/contract/(\w+)``")
_PROMISE = re.compile(r"^([a-z]+) {2,}(\S.*(?:\n {3,}\S.*)*)$", re.MULTILINE)
_ONLY_PROMISE = re.compile(r"[Pp]romise in ``tests/contract/\w+``: (.+)")


def backends_page() -> str:
    """Every promise of a store's ports, and the stores that keep them."""
    names = ", ".join(f"`{name}`" for name in _store_names())
    rows = "".join(_promise_row(promise) for promise in promises())
    return (
        f"# Stores and their promises\n\n{NOTE}\n"
        "Each promise is in the docstring of its port, and the linked modules test it\n"
        f"on every store: {names}.\n\n"
        "`memory://` is `sqlite` in a temporary folder, removed when the store is closed: it keeps\n"
        "every promise except `durable`. See [choosing a backend](../explanation/choosing-a-backend.md).\n\n"
        f"| port | promise |\n| --- | --- |\n{rows}"
    )


def promises() -> Iterator[Promise]:
    """The promises of a store's ports."""
    of_every_store = [each for each in get_type_hints(Backend).values() if isinstance(each, type)]
    for port in of_every_store:
        text = inspect.cleandoc(port.__doc__ or "")
        folder = _FOLDER.findall(text)[0]
        only = _ONLY_PROMISE.search(" ".join(text.split()))
        found = [("", only[1])] if only else _PROMISE.findall(text)
        for name, told in found:
            yield Promise(port.__name__, name, " ".join(told.split()).replace("``", "`"), folder)


def _promise_row(promise: Promise) -> str:
    named = f"[{promise.name}](../../tests/contract/{promise.folder}/test_{promise.name}.py): "
    unnamed = f"[all](../../tests/contract/{promise.folder}): "
    return f"| {promise.port} | {(named if promise.name else unnamed) + promise.text} |\n"


def _store_names() -> list[str]:
    """The stores that the contract suite runs on."""
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    return [each.name for each in importlib.import_module("support.set_ups").SET_UPS]


# --- metrics ------------------------------------------------------------------------------------


_OF_ONE_PROCESS = (
    definitions.RETRY_SUCCESS_RATE,
    definitions.PROVIDER_OPEN,
    definitions.PROVIDER_OPEN_SECONDS,
    definitions.PROVIDER_TROUBLE,
    definitions.PROVIDER_RATE,
)


def _own_gauges() -> str:
    return ", ".join(f"`{each.full_name}`" for each in _OF_ONE_PROCESS)


def metrics_page() -> str:
    """Every metric with its type, its labels and its meaning."""
    rows = "".join(_metric_row(each) for each in definitions.METRICS.values())
    of_tickets = "".join(_metric_row(each) for each in ticket_metrics.ALL)
    of_archives = "".join(_metric_row(each) for each in archive_metrics.OWN)
    return (
        f"# Metrics\n\n{NOTE}\n"
        "Every process has a page for Prometheus: at `/metrics` of the API, for administrators\n"
        "(`Authorization: Bearer TOKEN`). With the setting `metrics.host`, `carteiro up`, `carteiro api` and\n"
        "`carteiro worker` also serve it on a separate address, without a token.\n\n"
        "Counters and histograms are of one process since its start: sum them over processes.\n"
        "These gauges are of one process too, and may differ between processes:\n"
        f"{_own_gauges()}.\n"
        "The other gauges come from the store and are the same in each process: take the maximum. They are at most\n"
        "a few seconds old, and their cost does not depend on the number of jobs. While the store is down they are\n"
        f"absent, and `{definitions.STORE_UP.full_name}` is 0.\n\n"
        "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
        f"{rows}\n"
        "The number of labels is limited. `tenant`: the `metrics.top_tenants` with most jobs by name, all others\n"
        f"together as `{definitions.OTHER}`. `code`: the first {MOST_CODES} codes, later ones as\n"
        f"`{definitions.OTHER}`. `attempt`: from {LAST_ATTEMPT} on together, as `{attempt_label(LAST_ATTEMPT)}`.\n"
        "`route`: the path with the names of its parameters, `none` for an unknown path.\n\n"
        "## The ticket lane\n\n"
        "`carteiro tickets run` and `carteiro tickets archive` have a page each, at `tickets.metrics_host` and\n"
        "`tickets.metrics_port`. Counters, lag and keys are those of one process: sum them.\n\n"
        "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
        f"{of_tickets}\n"
        f"`task_type`: types with a handler, all others together as `{definitions.OTHER}`.\n\n"
        "Of an archive:\n\n"
        "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
        f"{of_archives}"
    )


def _metric_row(metric: definitions.Metric) -> str:
    labels = ", ".join(f"`{each}`" for each in metric.labels)
    return f"| `{metric.full_name}` | {metric.type} | {labels} | {metric.told} |\n"


# --- SQL ----------------------------------------------------------------------------------------

_RELATIONS: Mapping[str, str] = {
    "email_outbox": "Every accepted e-mail, with its body and its state.",
    "email_logs": "Every e-mail, without its body, with its result.",
    "email_events": "The timelines of all messages, one row per event.",
    "recipients": "Recipients of the tenants; rows are updated when an e-mail is accepted.",
    "dlq": "The dead letters, of e-mail and of tasks.",
}
_COLUMNS: Mapping[str, str] = {
    "attempts": "calls of a provider, since the message was accepted",
    "category": "category of the last failure",
    "companyId": "the tenant",
    "cpfCnpjHash": "hash of the recipient's document",
    "createdAt": "when it was created, or happened",
    "deletedAt": "when it was deleted; NULL if it was not",
    "durationMs": "time from the claim to the end of the last attempt",
    "email": "address of the recipient",
    "emailLogId": "the message",
    "enqueuedAt": "when the message was accepted",
    "errorCode": "code of the last failure; NULL once it is sent",
    "errorReason": "reason of the last failure; NULL once it is sent",
    "externalId": "the tenant's own id",
    "failedAt": "when it became FAILED or EXPIRED",
    "failedAttempts": "charged failures of the last round",
    "html": "the HTML body; NULL after its retention, or if there is none",
    "id": "id of the row; for an e-mail, the id of the message",
    "jobId": "the job; the same id as the message",
    "lastError": "reason of the last failure; NULL once it is sent",
    "lastFailureCode": "code of the last failure",
    "lastFailureReason": "reason of the last failure",
    "lastFailureTimestamp": "when it failed for the last time",
    "metadata": "data of the event, as JSON",
    "movedToDLQAt": "when it became a dead letter",
    "nome": "the recipient's name",
    "originalCode": "the provider's own code of the failure",
    "originalData": "the content of the message, as JSON",
    "outboxId": "the message",
    "priority": "1 is the most urgent",
    "processedAt": "when it was finished",
    "razaoSocial": "the recipient's registered name",
    "reason": "why it is a dead letter",
    "recipientId": "the recipient, if the message has one",
    "requestId": "the request that submitted it",
    "sentAt": "when it became SENT",
    "sesMessageId": "the provider's id of it, for any provider",
    "status": "the [state](states.md)",
    "subject": "the subject",
    "to": "the address it goes to",
    "ttl": "time for which the entry is kept, in milliseconds",
    "type": "type of event: a state, or something in addition to the states",
}


# The table queue of Postgres; a test asks a database for the names.
TABLE_QUEUE: Mapping[str, str] = {
    "id": "the message; the same id as in the other relations, the API and `carteiro show`",
    "user_id": "the application's own user id",
    "template_type": "the template",
    "recipient_email": "the address it goes to",
    "payload": "the variables of the template, as JSON; NULL after its [retention](retention.md)",
    "status": "`pending`, `sent`, `failed` (also if it expired) or `cancelled`",
    "retries": "retries scheduled so far",
    "max_retries": "maximum number of retries",
    "last_attempt_at": "time of the last attempt",
    "next_retry_at": "time of the next attempt; NULL once it is finished, or until a marked failure is applied",
    "error_message": "reason of the last failure, also of an e-mail that was sent after it",
    "resend_id": "the provider's id of it, for any provider",
    "created_at": "when it was enqueued",
}
_FUNCTIONS: Mapping[str, str] = {
    "enqueue_email": "enqueues an e-mail, and returns its id",
    "mark_email_failed": "counts a failed attempt of the application; false if it is finished or a worker has it",
    "process_pending_emails_for_retry": "wakes the workers, and returns the first `n` rows that are due",
    "client_role": "allows a database role to use the table queue and read the views, as this tenant",
    "show_table_queue": "moves views and table queue into the schema `public`, if their names are free there now",
}
_SIGNATURE = re.compile(
    r"^CREATE OR REPLACE FUNCTION carteiro\.(\w+)\(\s*(.*?)\s*\) RETURNS (.+?)$",
    re.DOTALL | re.MULTILINE,
)


def sql_page() -> str:
    """The public relations, with their columns."""
    sections = "".join(_relation(name, columns) for name, columns in relations().items())
    return (
        f"# Relations for SQL\n\n{NOTE}\n"
        "These views are for queries and belong to the public interface; the tables behind them do\n"
        "not. They have the same names and columns on SQLite and on Postgres. They are read-only: write\n"
        "through the library or the API; on Postgres also by [the table queue](#email_queue).\n\n"
        "| | SQLite | Postgres |\n| --- | --- | --- |\n"
        "| location | in the file | in the schema `public` |\n"
        "| case of column names | any | any, without quotes; they are stored in lower case |\n"
        "| times | texts, ISO 8601 in UTC with milliseconds | `timestamptz` |\n"
        "| a body or reason with U+0000 | ends before it | has U+FFFD instead |\n"
        "| read access | everybody who can read the file | Carteiro's own role; a "
        "[client role](../how-to/enqueue-from-sql.md#client-roles) sees its own tenant's rows |\n\n"
        "```sql\nSELECT status, count(*) FROM email_logs WHERE companyId = 'acme' GROUP BY status;\n```\n\n"
        '`to` is a reserved word of SQL: write `"to"`. If the schema `public` has a relation with\n'
        "one of these names, or Carteiro may not create there, that view is in the schema `carteiro`.\n\n"
        "A [queue in Redis](../how-to/run-beside-redis.md) changes nothing: the views show the ledger.\n"
        f"{sections}{_table_queue()}"
    )


def _table_queue() -> str:
    rows = "".join(f"| `{column}` | {told} |\n" for column, told in TABLE_QUEUE.items())
    functions = "".join(
        f"| `{signature}` | {_FUNCTIONS[name]} |\n" for name, signature in signatures().items()
    )
    return (
        "\n## email_queue\n\n"
        "Only on Postgres: the e-mails that were enqueued by SQL or over `/rest/v1/rpc/enqueue_email`.\n"
        "INSERT and some UPDATEs are allowed, see [enqueue from SQL](../how-to/enqueue-from-sql.md).\n"
        "It is in the schema `public` like the views, with its first three functions. The other\n"
        "functions are in the schema `carteiro`, for Carteiro's own role.\n\n"
        f"| column | what it is |\n| --- | --- |\n{rows}\n"
        f"| function | what it does |\n| --- | --- |\n{functions}"
    )


def signatures() -> dict[str, str]:
    """The functions of the table queue that are for others, as they are declared."""
    declarations = REPOSITORY / "src/carteiro/stores/postgres/functions/table_queue.sql"
    declared = {
        name: f"{name}({taken}) → {given.replace('SETOF carteiro.table_queue', 'rows of email_queue')}"
        for name, taken, given in _SIGNATURE.findall(declarations.read_text("utf-8"))
    }
    return {name: declared[name] for name in _FUNCTIONS}


_OWN_VIEWS = {"ledger", "timelines"}


def relations() -> dict[str, list[str]]:
    """The public views of a fresh SQLite store and their columns; the store has others for itself."""
    with (
        TemporaryDirectory() as folder,
        closing(opening.connect(Path(folder) / "fresh.db", busy_timeout_ms=1000)) as db,
    ):
        opening.migrate(db, Path(folder) / "fresh.db")
        views = db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall()
        return {name: _columns(db, name) for (name,) in views if name not in _OWN_VIEWS}


def _columns(db: sqlite3.Connection, relation: str) -> list[str]:
    found = db.execute("SELECT name FROM pragma_table_info(?)", (relation,))
    return [name for (name,) in found]


def _relation(name: str, columns: Sequence[str]) -> str:
    rows = "".join(f"| `{column}` | {_COLUMNS[column]} |\n" for column in columns)
    return f"\n## {name}\n\n{_RELATIONS[name]}\n\n| column | what it is |\n| --- | --- |\n{rows}"


# --- the command line -----------------------------------------------------------------------------


class Leaf(NamedTuple):
    """One command that can be run, by its whole name."""

    name: str
    command: Any


def cli_page() -> str:
    """Every command with its arguments and options, and how commands end."""
    codes = "".join(f"| {code.value} | {MEANINGS[code]} |\n" for code in ExitCode)
    commands = "".join(_command(leaf) for leaf in leaves())
    return (
        f"# The command line\n\n{NOTE}\n"
        "`carteiro COMMAND --help` says the same. Commands open the store themselves, with the\n"
        "[settings](settings.md) of the server, and are safe alongside a running `carteiro up` on the same file.\n\n"
        "**For people** there are tables. **For programs** `--json` prints one JSON document on one line;\n"
        "a list is one document a line, and nothing if it is empty. Names are those of\n"
        "the HTTP API. Data goes to stdout; messages about it, and progress, to stderr.\n\n"
        "**Durations** are written as `250ms`, `30s`, `5m`, `2h`, `7d`; in JSON they are milliseconds.\n"
        "**Times** are ISO 8601, UTC unless they name an offset; `--since` and `--before` also take a\n"
        "duration before now.\n\n"
        "Commands that cannot be undone ask for confirmation; `--yes` confirms, and is required without a terminal.\n\n"
        "| exit code | meaning |\n| --- | --- |\n"
        f"{codes}{commands}"
    )


def leaves(group: Any = None, path: str = "carteiro") -> Iterator[Leaf]:  # noqa: ANN401 - of whatever library Typer uses
    """Every command, in the order of the help."""
    group = group or typer.main.get_command(cli.app)
    for name in group.list_commands(None):
        command, whole = group.get_command(None, name), f"{path} {name}"
        if hasattr(command, "commands"):
            yield from leaves(command, whole)
        else:
            yield Leaf(whole, command)


def _command(leaf: Leaf) -> str:
    parameters = [each for each in leaf.command.params if each.name != "help"]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name == "option"]
    usage = " ".join([leaf.name, *(_argument(each) for each in arguments)])
    rows = "".join(_option(each) for each in options)
    table = f"\n| option | |\n| --- | --- |\n{rows}" if rows else ""
    told = inspect.cleandoc(leaf.command.help or "")
    return f"\n## {leaf.name}\n\n```text\n{usage} [OPTIONS]\n```\n\n{told}\n{table}"


def _argument(argument: Any) -> str:  # noqa: ANN401 - as `leaves`
    name = argument.metavar or argument.name.upper()
    several = "" if argument.nargs == 1 else "..."
    return f"{name if argument.required else f'[{name}]'}{several}"


def _option(option: Any) -> str:  # noqa: ANN401 - as `leaves`
    flags = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    required = " Required." if option.required else ""
    is_told = not option.is_flag and option.default not in {None, ""}
    default = f" Default: {_plain_default(option.default)}." if is_told else ""
    return f"| {flags} | {option.help}{required}{default} |\n"


def _plain_default(default: object) -> str:
    return str(getattr(default, "value", default))


# --- writing ----------------------------------------------------------------------------------

PAGES: Mapping[str, Callable[[], str]] = {
    **{f"../../deploy/grafana/{uid}.json": partial(dashboard, uid) for uid in DASHBOARDS},
    "../../deploy/prometheus/carteiro.rules.yaml": rules_file,
    "alerts.md": lambda: alerts_page(NOTE),
    "api.md": lambda: api_page(NOTE),
    "backends.md": backends_page,
    "cli.md": cli_page,
    "errors.md": lambda: errors_page(NOTE),
    "kpis.md": lambda: kpis_page(NOTE),
    "verdicts.md": lambda: verdicts_page(NOTE),
    "metrics.md": metrics_page,
    "path-of-an-email.md": path_page,
    "providers.md": providers_page,
    "roles.md": lambda: roles_page(NOTE),
    "sandbox.md": sandbox_page,
    "settings.md": settings_page,
    "sql.md": sql_page,
    "states.md": states_page,
}


def outdated() -> list[str]:
    """The pages that differ from what the code says."""
    return [name for name, page in PAGES.items() if _written(name) != page()]


def _written(name: str) -> str:
    path = REFERENCE / name
    return path.read_text("utf-8") if path.exists() else ""


def main(arguments: list[str]) -> int:
    """Write what is outdated, or with ``--check`` only name it and fail."""
    names = outdated()
    if "--check" in arguments:
        for name in names:
            print(f"outdated: docs/reference/{name}; run make docs")
        return len(names)
    for name in names:
        (REFERENCE / name).write_text(PAGES[name](), "utf-8")
        print(f"written: docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
