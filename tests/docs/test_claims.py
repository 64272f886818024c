"""Lists and numbers in the docs are those of the code."""

import re
from datetime import timedelta

import pytest

import errors_page
import generate
from carteiro.api.batch import MOST_IN_A_BATCH
from carteiro.api.body import MAX_BATCH_BYTES
from carteiro.config import load
from carteiro.email.message import MAX_REQUEST_BYTES
from carteiro.model import MOST_LIVE_KEYS, ZERO
from carteiro.observability.metrics.definitions import METRICS
from carteiro.path.confirm import MAX_HTML_BYTES
from carteiro.path.judge import MOST_CLAIMS
from carteiro.policy import tags
from carteiro.policy.active import MOST_COMMENTS, MOST_TIMES_JUDGED, SPARE_CHARACTERS
from carteiro.policy.fairness import LEAST_WEIGHT, MOST_WEIGHT, SCALE, SUSPECT_CLAIMS
from carteiro.policy.html import (
    LARGEST_PARSED,
    MOST_BUILT,
    MOST_BUILT_CHARACTERS,
    MOST_PARSED_ATTRIBUTES,
    MOST_PARSED_TAGS,
    MOST_REPEATED,
    SCREENED_AT_ONCE,
    find_danger,
)
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.policy.markup import MOST_ATTRIBUTES, MOST_STEPS
from carteiro.policy.quota import KEY_LIFE_MS
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.policy.stage import Stage
from carteiro.providers.resend.spec import REPLAYS_FOR
from carteiro.stores.sqlite.opening import _OLDEST_SQLITE
from carteiro.tickets import alerts
from carteiro.tickets.archive import metrics as archive_metrics
from carteiro.tickets.archive.redrive import MOST_REDRIVES
from carteiro.tickets.consume import metrics as ticket_metrics
from carteiro.tickets.consume import notes, pauses
from carteiro.tickets.consume.counter import TIME_TO_LIVE_S
from carteiro.tickets.consume.http_handler import _WORTH_ANOTHER_TRY, _as_ascii
from carteiro.tickets.dead_letters import topic
from carteiro.tickets.dead_letters.envelope import TOPIC_LIMIT, done_envelope
from carteiro.tickets.ticket import LONGEST_ID
from support.deaths import a_death, envelope
from support.lane import HOW_TO as TICKETS
from support.lane import RECOVER
from support.pages import REPOSITORY, pages, text_of

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
TIMES = {1: "once", 2: "twice"}
ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_PARTS = {
    "formatted",
    "lint",
    "imports",
    "types",
    "fast-tests",
    "quick-tests",
    "slow-tests",
}  # of check and test
_SERVER = re.compile(r"^\| `(\w+)` \|(?:[^|]*\|){3}$", re.MULTILINE)
_TARGET = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)

_METRIC = re.compile(r"\bcarteiro_[a-z_]+\b(?!\.)")
_SERIES = ("_bucket", "_count", "_sum")  # of a histogram
_OWN_CODE = re.compile(r'(?:code=|_unfit\(\w+, |unfit\([\w.]+, |validation\()"([A-Z_0-9]+)"')

DAYS = {timedelta(days=1): "a day"}
KEY_LIFE = timedelta(milliseconds=KEY_LIFE_MS)
SETTINGS = load(environ={})
LEASES = "docs/explanation/leases-holds-and-fencing.md"
FAIRNESS = "docs/explanation/fairness.md"
HTML = "docs/reference/html.md"
RETENTION = "docs/reference/retention.md"
TUTORIAL = "docs/tutorial/first-email-over-http.md"
SMTP = "docs/how-to/send-through-smtp.md"
RESEND = "docs/how-to/send-through-resend.md"
DEPLOYED = "deploy/carteiro.toml"
MIB = 1024 * 1024
HEADERS = {
    name
    for made in (
        envelope(a_death(), published_at_ms=1, group="workers"),
        done_envelope(a_death().ticket, redrives=1),
    )
    for name, _ in made.headers
}
DEFAULT_PRESET = PRESETS[SETTINGS.retry_preset]


def lasting(policy: RetryPolicy) -> timedelta:
    """Time from the first attempt to the last, if none takes any time."""
    return sum((policy.delay(failed, 0.5) for failed in range(1, policy.max_attempts)), ZERO)


@pytest.mark.parametrize(
    ("page", "claim"),
    [
        ("README.md", " --> ".join(generate.stage_names())),
        ("CONTRIBUTING.md", ", ".join(generate.stage_names())),
        ("CHANGELOG.md", ", ".join(generate.stage_names())),
        (LEASES, f"({LONGEST_HOLD_MS // 60_000} minutes)"),
        (RESEND, f"more than {REPLAYS_FOR // timedelta(hours=1)} hours ago"),
        *((RESEND, f"`{tag}`") for tag in (tags.MESSAGE, tags.TENANT, tags.REVISION, tags.COPIES)),
        (LEASES, f"From the {ORDINALS[SUSPECT_CLAIMS + 1]} claim on"),
        (LEASES, f"After {NUMBERS[MOST_CLAIMS]} claims"),
        (FAIRNESS, f"costs {SCALE:,}"),
        (FAIRNESS, f"from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"),
        ("docs/how-to/send-over-http.md", f"Up to {MOST_IN_A_BATCH:,} in one commit"),
        ("docs/how-to/send-over-http.md", f"at most {MAX_BATCH_BYTES // MIB} MiB"),
        ("docs/how-to/send-over-http.md", f"({MAX_REQUEST_BYTES:,} bytes)"),
        ("docs/how-to/send-over-http.md", f"are {SETTINGS.api.per_minute} a minute"),
        ("docs/how-to/send-over-http.md", f"within {DAYS[KEY_LIFE]}"),
        (TUTORIAL, f"{NUMBERS[DEFAULT_PRESET.max_attempts]} attempts within about"),
        (TUTORIAL, f"about {lasting(DEFAULT_PRESET).seconds} seconds"),
        (SMTP, f"gives up after about {lasting(DEFAULT_PRESET).seconds} seconds"),
        (SMTP, f"retries for {lasting(PRESETS['transactional']).seconds // 60} minutes"),
        (DEPLOYED, f"within {lasting(PRESETS['transactional']).seconds // 60} minutes"),
        (DEPLOYED, f"gives up after about {lasting(DEFAULT_PRESET).seconds} seconds"),
        (
            TICKETS,
            f"{topic.PARTITIONS} partitions, up to {topic.REPLICAS} replicas, 30 days",
        ),
        (TICKETS, f"1 to {LONGEST_ID} characters"),
        (TICKETS, f"`é` is `{_as_ascii('é')}`"),
        (TICKETS, f"into its topic, {TOPIC_LIMIT // MIB} MiB"),
        (TICKETS, f"with {SETTINGS.tickets.max_retries_before_dlq}, the third failure"),
        (TICKETS, f"wait is {PRESETS['tickets'].base.seconds} s after the first failure"),
        (
            TICKETS,
            f"at most {PRESETS['tickets'].cap.seconds} s, and varies by {PRESETS['tickets'].jitter:.0%}",
        ),
        (TICKETS, f"half of the last {pauses.REMEMBERED} of a type"),
        (TICKETS, f"at least {SETTINGS.tickets.pause_tickets} different tickets within a minute"),
        (TICKETS, f"after {SETTINGS.tickets.pause_at_most.seconds // 60} minutes at the latest"),
        (TICKETS, f"within {alerts.LASTS.seconds // 60} minutes if only workers know"),
        (TICKETS, f"retention.ms={TIME_TO_LIVE_S * 1000}"),
        (TICKETS, f"{', '.join(map(str, sorted(_WORTH_ANOTHER_TRY)))}, 5xx and no answer"),
        (RECOVER, f"was redriven {MOST_REDRIVES} times"),
        ("docs/explanation/how-tickets-are-kept.md", f"{notes.MOST_CHARACTERS:,} characters"),
        ("deploy/strimzi/topics.yaml", f"retention.ms: {TIME_TO_LIVE_S * 1000} # 7 days"),
        ("docs/how-to/rotate-keys.md", f"at most {NUMBERS[MOST_LIVE_KEYS]} live keys"),
        (RETENTION, f"| an idempotency key | {DAYS[KEY_LIFE]} |"),
        (RETENTION, f"by default {SETTINGS.dead_letters.ttl.days} days"),
        (RETENTION, f"by default after [{DAYS[SETTINGS.delivery.default_ttl]}]"),
        (
            "docs/explanation/decisions/0007-html-judged-by-a-parser.md",
            f"{LARGEST_PARSED // 1024} Ki characters",
        ),
        *(
            (page, bound)
            for page in (HTML, "docs/explanation/decisions/0026-every-reading-of-the-tags.md")
            for bound in (
                f"{MOST_ATTRIBUTES} attributes in a tag",
                f"{MOST_STEPS:,} tags and attributes",
                f"{LARGEST_PARSED // 1024} Ki characters, {MOST_PARSED_TAGS} tags",
                f"{MOST_PARSED_ATTRIBUTES:,} attributes",
                f"{MOST_BUILT:,} elements and attributes",
                f"{MOST_BUILT_CHARACTERS // 1024} Ki characters",
                f"{MOST_COMMENTS} comments",
                TIMES[MOST_TIMES_JUDGED] + " the",
                f"{SPARE_CHARACTERS // 1024} Ki",
            )
        ),
        (
            "docs/explanation/decisions/0026-every-reading-of-the-tags.md",
            f"{MOST_REPEATED:,} elements and attributes",
        ),
        (HTML, f"At most {MAX_HTML_BYTES // 1024} KiB"),
        (
            "docs/explanation/decisions/0027-judging-leaves-the-event-loop.md",
            f"up to {SCREENED_AT_ONCE // 1024} Ki characters",
        ),
        (
            "docs/explanation/choosing-a-backend.md",
            f"{_OLDEST_SQLITE[0]}.{_OLDEST_SQLITE[1]} or newer",
        ),
    ],
)
def test_claim_in_the_docs_is_true(page: str, claim: str) -> None:
    """A number or a list that changes in the code must change on its page."""
    assert claim in " ".join(text_of(page).split())


def test_table_of_html_is_true() -> None:
    """Each example is refused or allowed as it says."""
    examples = re.findall(r"^\| `(.*)` \| (refused|allowed) \|", text_of(HTML), re.MULTILINE)

    assert examples
    for html, verdict in examples:
        assert (find_danger(html) is not None) is (verdict == "refused"), html


def test_table_of_servers_is_complete() -> None:
    """Every server that the tests start is explained, and no other."""
    [names] = re.findall(r"^all=\((.*)\)$", text_of("tools/services"), re.MULTILINE)

    assert _SERVER.findall((REPOSITORY / "tests/README.md").read_text("utf-8")) == names.split()


def test_every_make_target_is_explained() -> None:
    """`make` lists every target with its purpose; the pages point there."""
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    public = set(re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[0].split())

    assert set(_TARGET.findall(makefile)) == public - _PARTS
    assert "`make` lists all commands" in text_of("CONTRIBUTING.md")


@pytest.mark.parametrize("page", [page for page in pages() if _METRIC.search(text_of(page))])
def test_named_metric_exists(page: str) -> None:
    """An alert built on a page gets figures."""
    known = {metric.full_name for metric in METRICS.values()}
    known |= {metric.full_name for metric in (*ticket_metrics.ALL, *archive_metrics.OWN)}
    series = {name + end for name in known for end in _SERIES}

    assert set(_METRIC.findall(text_of(page))) - known - series - HEADERS == set()


def test_every_own_code_is_explained() -> None:
    """Every failure code that the code itself produces is documented, and no other."""
    sources = (REPOSITORY / "src/carteiro").rglob("*.py")
    made = {code for source in sources for code in _OWN_CODE.findall(source.read_text("utf-8"))}

    assert made == errors_page.OWN_CODES.keys()


def test_all_stages_for_a_rule_are_listed() -> None:
    """Nobody writes a rule for an undocumented stage."""
    text = " ".join(text_of("docs/how-to/judge-answers-yourself.md").split())

    assert f"`stage` ({', '.join(f'`{stage}`' for stage in Stage)})" in text


def test_every_header_of_a_dead_letter_is_documented() -> None:
    """Other systems read them, too."""
    assert set(re.findall(r"`([\w.-]+)`", text_of(TICKETS))) >= HEADERS
