"""Failures that are alike: which are one group, and what is left of their reasons."""

import os
import re
import string
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carteiro.model import Failure
from carteiro.policy import classify, grouping
from carteiro.policy.grouping import LONGEST_REASON, alike, group_of, plain_reason, readable_reason
from carteiro.policy.stage import Stage
from support.answers import ALL
from support.builders import a_failure

_WORDS = st.text(string.ascii_letters, min_size=1, max_size=12)
_HOSTS = st.builds("{}.{}.{}".format, _WORDS, _WORDS, st.sampled_from(["com", "org", "br"]))
_ADDRESSES = st.builds(
    "{}@{}".format, st.one_of(_WORDS, st.builds("{}.{}".format, _WORDS, _WORDS)), _HOSTS
)
_IDS = st.one_of(
    st.uuids().map(str),
    st.integers(0, 10**18).map(str),
    st.text("0123456789abcdef", min_size=6, max_size=32),
    st.text(string.ascii_letters + string.digits + "+/=-_", min_size=6, max_size=40),
    st.text(string.ascii_lowercase, min_size=3, max_size=20),
    _ADDRESSES,
    _HOSTS,
    st.ip_addresses().map(str),
    _ADDRESSES.map("<{}>".format),
    st.text(min_size=1, max_size=20).map(lambda text: f'"{text.replace(chr(34), "")}"'),
)
_REPLIES = (
    "550 5.1.1 {}: Recipient address rejected: User unknown in virtual mailbox table",
    "User {} unknown, your request {} was refused",
    "421-4.7.28 Our system has detected an unusual rate of mail {}. - gsmtp {}",
    "554 Message rejected ({}): {}",
    "host {} said: mailbox is full; id={}",
)


def _is_told(identity: str) -> bool:
    """True if an id happens to be made of words that the rules know."""
    return bool(plain_reason(identity))


@given(st.sampled_from(_REPLIES), st.lists(_IDS, min_size=4, max_size=4))
def test_answers_that_differ_only_in_ids_are_one_group(reply: str, ids: list[str]) -> None:
    """Ids, addresses, hosts and quoted parts; of the queue, the sender or the recipient."""
    assume(not any(map(_is_told, ids)))
    first, second = (
        replace(a_failure(), reason=classify.one_line(reply.format(*some)))
        for some in (ids[:2], ids[2:])
    )

    assert group_of("smtp", first) == group_of("smtp", second)


@given(st.lists(st.one_of(_ADDRESSES, _WORDS, st.text(max_size=10)), max_size=30))
def test_no_address_survives(parts: list[str]) -> None:
    """Only letters and spaces are left, and few of them; each word is one that the rules know."""
    reason = " ".join(parts)
    told, shown = plain_reason(reason), readable_reason(reason)

    assert len(told) <= LONGEST_REASON
    assert len(shown) <= LONGEST_REASON
    assert all(word.isalpha() and word in grouping._known() for word in told.split())
    assert all(word in grouping._known() for word in plain_reason(shown).split())
    letters = re.findall(r"[^\W_]+(?:['-][^\W_]+)*", shown)
    assert all(plain_reason(word) for word in letters)


def test_answers_stay_readable() -> None:
    """Most words of labelled answers are left, so that people recognize the cause."""
    is_word = re.compile(r"[A-Za-z]{2,}")
    plain = [part for each in ALL for part in each.text.split() if not grouping._NAMED.search(part)]
    said = [word for part in plain for word in is_word.findall(part)]
    left = [word for each in ALL for word in is_word.findall(plain_reason(each.text))]

    assert len(left) > 0.85 * len(said)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("550 5.1.1 <ana@x.com>: User unknown", "user unknown"),
        ("550 There is no room in ana's mailbox", "there is no room in s mailbox"),
        ("KeyError: 'ana'", ""),
        ("421 mx1.example.com closing, can't continue", "closing cannot continue"),
        ("", ""),
    ],
)
def test_known_words_are_left(reason: str, told: str) -> None:
    """In lower case, without punctuation."""
    assert plain_reason(reason).removeprefix("key error").strip() == told


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            "The e-mail has no from address: set from, or set smtp.default_from",
            "The e-mail has no from address: set from, or set …",
        ),
        ("550 5.1.1 <ana@x.com>: User unknown (ana, 42)", "User unknown …"),
        ("421 mx1.example.com closing, can't continue", "closing, can't continue"),
        ("KeyError: 'ana'", ""),
        ("ana", ""),
        ("", ""),
        ("user unknown " * 20, ("user unknown " * 20)[: LONGEST_REASON - 1] + "…"),
    ],
)
def test_shown_reason_reads_as_it_was_written(reason: str, told: str) -> None:
    """But for what may be a name, an id or content; the group is that of the plain reason."""
    assert readable_reason(reason) == told


def test_provider_rule_and_error_tell_groups_apart() -> None:
    """Not the code: one cause has several."""
    failure = a_failure(rule="smtp.text.quota@rcpt", reason="Over quota")
    others = [
        ("ses", failure),
        (None, failure),
        ("smtp", replace(failure, rule="smtp.text.quota@data")),
        ("smtp", replace(failure, original_code="ValueError")),
        ("smtp", replace(failure, reason="Mailbox full")),
    ]

    assert len({group_of(*each) for each in [("smtp", failure), *others]}) == 1 + len(others)
    assert group_of("smtp", failure) == group_of("smtp", replace(failure, code="552"))
    assert group_of("smtp", failure) == group_of("smtp", replace(failure, original_code="4.2.2"))


@pytest.mark.parametrize("field", ["rule", "original_code"])
def test_texts_of_a_task_are_not_shown(field: str) -> None:
    """A task may put anything in its failure: an address is neither a rule nor the name of an error."""
    failure = a_failure(**{field: "ana@example.com"})

    assert not any("ana" in part for part in alike("task", failure))


@pytest.mark.parametrize("stage", Stage)
def test_rules_of_replies_are_kept(stage: Stage) -> None:
    """With their stage."""
    failure: Failure = classify.classify_smtp("550 5.1.1 User unknown", stage=stage)

    assert alike("smtp", failure)[1] == failure.rule


def test_every_process_finds_the_same_group() -> None:
    """Ids are stored: they depend on neither the order of a set nor the process."""
    asked = "from carteiro.policy.grouping import _known; print(*sorted(_known()))"
    told = {
        subprocess.run(
            [sys.executable, "-c", asked],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(told) == 1
