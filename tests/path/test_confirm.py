"""The four validations: their order, their codes, and valid input."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.jobs.confirmation import Confirmation, Confirmed, NeedsCloserLook, Unfit
from carteiro.model import (
    EMAIL,
    Category,
    Delivery,
    Lease,
    LeasedJob,
    Recipient,
    RecipientId,
    Scope,
    TenantId,
)
from carteiro.path import confirm as stage
from carteiro.path.confirm import MAX_HTML_BYTES, VALIDATIONS, judge_closely
from carteiro.policy.html import SCREENED_AT_ONCE
from support.builders import ACME, BRASA, a_claim_id, an_id

ANA = RecipientId("recipient-1")


def a_content(**changes: Any) -> str:
    """Valid stored content; a change to None leaves the field out."""
    fields = {"to": "ana@example.com", "subject": "Bom dia", "html": "<p>Olá</p>"} | changes
    return json.dumps({name: each for name, each in fields.items() if each is not None})


def a_recipient(**changes: Any) -> Recipient:
    """Ana, as stored."""
    fields: dict[str, Any] = {
        "id": ANA,
        "tenant": ACME,
        "email": "ana@example.com",
        "external_id": "42",
        "cpf_cnpj_hash": None,
        "razao_social": None,
        "nome": "Ana",
        "created_at": datetime(2030, 1, 1, tzinfo=UTC),
        "deleted_at": None,
    }
    return Recipient(**(fields | changes))


def a_job(content: str | None, **changes: Any) -> LeasedJob:
    """A job just claimed, with this content."""
    fields: dict[str, Any] = {
        "lease": Lease(an_id(), a_claim_id()),
        "kind": EMAIL,
        "tenant": ACME,
        "claims": 1,
        "content": content,
        "ledger_tenant": ACME,
        "request_id": "request-1",
        "delivery": Delivery.AT_LEAST_ONCE,
        "attempts": 0,
        "charged": 0,
        "in_doubt": 0,
        "revision": 1,
        "open_attempt": False,
        "expires_in": timedelta(hours=1),
    }
    return LeasedJob(**(fields | changes))


def confirm(job: LeasedJob) -> Confirmation:
    """The result of this job; a suspect is checked at once."""
    answer = stage.confirm(job)
    return judge_closely(job, answer.email) if isinstance(answer, NeedsCloserLook) else answer


def unfit(job: LeasedJob) -> Unfit:
    """The refusal that this job must get."""
    answer = confirm(job)
    assert isinstance(answer, Unfit)
    return answer


def test_valid_email_is_confirmed_by_all_four() -> None:
    """The result names the validations in their order."""
    answer = confirm(a_job(a_content()))

    assert isinstance(answer, Confirmed)
    assert answer.email.to == "ana@example.com"
    assert answer.validations == VALIDATIONS == ("INTEGRITY", "OUTBOX", "RECIPIENT", "TEMPLATE")


@pytest.mark.parametrize(
    ("job", "validation", "code", "scope"),
    [
        (a_job("{"), "INTEGRITY", "INVALID_PAYLOAD", Scope.MESSAGE),
        (a_job(a_content(ttl="x")), "INTEGRITY", "INVALID_PAYLOAD", Scope.MESSAGE),
        (a_job(None, ledger_tenant=None), "OUTBOX", "OUTBOX_NOT_FOUND", Scope.MESSAGE),
        (a_job(a_content(), ledger_tenant=BRASA), "OUTBOX", "OUTBOX_NOT_FOUND", Scope.MESSAGE),
        (a_job(a_content(to="ana")), "RECIPIENT", "INVALID_EMAIL", Scope.RECIPIENT),
        (a_job(a_content(cc=["ana"])), "RECIPIENT", "INVALID_EMAIL", Scope.RECIPIENT),
        (
            a_job(a_content(), recipient_id=ANA),
            "RECIPIENT",
            "RECIPIENT_NOT_FOUND",
            Scope.RECIPIENT,
        ),
        (a_job(a_content(subject="")), "TEMPLATE", "INVALID_TEMPLATE", Scope.MESSAGE),
        (a_job(a_content(html=None)), "TEMPLATE", "INVALID_TEMPLATE", Scope.MESSAGE),
        (a_job(a_content(html="<script>")), "TEMPLATE", "INVALID_TEMPLATE", Scope.MESSAGE),
    ],
)
def test_each_validation_has_its_code(
    job: LeasedJob, validation: str, code: str, scope: Scope
) -> None:
    """The failure is permanent."""
    answer = unfit(job)

    assert (answer.validation, answer.failure.code) == (validation, code)
    assert answer.failure.category is Category.VALIDATION_ERROR
    assert answer.failure.scope is scope
    assert answer.failure.rule == f"validation.{validation.lower()}"
    assert not answer.failure.retryable
    assert answer.failure.reason


def test_first_failed_validation_decides() -> None:
    """With everything wrong they come up one after the other, as each is fixed."""
    wrong: dict[str, Any] = {"ledger_tenant": BRASA, "recipient_id": ANA}
    template = a_content(subject="")

    assert unfit(a_job("{", **wrong)).validation == "INTEGRITY"
    assert unfit(a_job(template, **wrong)).validation == "OUTBOX"
    assert unfit(a_job(template, recipient_id=ANA)).validation == "RECIPIENT"
    assert unfit(a_job(template)).validation == "TEMPLATE"


@pytest.mark.parametrize(
    "recipient",
    [
        None,
        a_recipient(tenant=TenantId("brasa")),
        a_recipient(deleted_at=datetime(2030, 1, 2, tzinfo=UTC)),
        a_recipient(email="eva@example.com"),
        a_recipient(email="Ana@example.com"),
    ],
    ids=["none", "of another tenant", "deleted", "another address", "another local part"],
)
def test_recipient_must_match_the_record(recipient: Recipient | None) -> None:
    """It exists, is this tenant's, was not deleted and has this address."""
    answer = unfit(a_job(a_content(), recipient_id=ANA, recipient=recipient))

    assert answer.failure.code == "RECIPIENT_NOT_FOUND"


def test_case_of_a_domain_does_not_matter() -> None:
    job = a_job(a_content(), recipient_id=ANA, recipient=a_recipient(email="ana@EXAMPLE.com"))

    assert isinstance(confirm(job), Confirmed)


@pytest.mark.parametrize("letter", ["x", "é"])
def test_html_has_up_to_512_kib(letter: str) -> None:
    """Exactly that many bytes of UTF-8 pass, one more does not."""
    exact = "<p>x" + letter * ((MAX_HTML_BYTES - 4) // len(letter.encode()))
    assert len(exact.encode()) == 512 * 1024

    assert isinstance(confirm(a_job(a_content(html=exact))), Confirmed)
    assert unfit(a_job(a_content(html=exact + "x"))).validation == "TEMPLATE"


@pytest.mark.parametrize(("size", "passes"), [(150, True), (151, False)])
def test_subject_has_up_to_150_characters(size: int, passes: bool) -> None:
    """A rendered subject has the limit of a given one."""
    assert isinstance(confirm(a_job(a_content(subject="é" * size))), Confirmed) is passes


def test_text_alone_is_enough() -> None:
    """An e-mail needs no HTML."""
    assert isinstance(confirm(a_job(a_content(html=None, text="Olá"))), Confirmed)


@pytest.mark.parametrize(
    "changes",
    [
        {"to": "secret"},
        {"secret@x.org": "secret"},
        {"recipient": {"externalId": "1", "email": "secret@x.org"}},
        {"subject": "secret\n"},
        {"html": "<secret@x.org onsecret@x.org=secret>"},
    ],
)
def test_reason_repeats_no_content(changes: dict[str, Any]) -> None:
    """Reasons are stored and logged, so they hold no address and no body."""
    assert "secret" not in unfit(a_job(a_content(**changes))).failure.reason


def test_suppressed_recipient_is_refused_for_good() -> None:
    """Also after an earlier attempt with an unknown result."""
    for changes in ({}, {"open_attempt": True, "attempts": 1}):
        job = a_job(a_content(), suppressed=frozenset({"ana@example.com"}), **changes)

        found = unfit(job)

        assert (found.validation, found.failure.code) == ("RECIPIENT", "SUPPRESSED")
        assert (found.failure.category, found.failure.retryable) == (
            Category.VALIDATION_ERROR,
            False,
        )
        assert found.failure.scope is Scope.RECIPIENT


def test_suppressed_copies_are_left_out() -> None:
    """From both lists; other suppressions do not matter."""
    content = a_content(cc=["bia@example.com", "caio@example.com"], bcc=["bia@example.com"])
    job = a_job(content, suppressed=frozenset({"bia@example.com", "zoe@example.com"}))

    confirmed = confirm(job)

    assert isinstance(confirmed, Confirmed)
    assert (confirmed.email.cc, confirmed.email.bcc) == (("caio@example.com",), ())
    assert (confirmed.left_out, confirmed.validations) == (("bia@example.com",), VALIDATIONS)


@pytest.mark.parametrize("changes", [{"open_attempt": True}, {"in_doubt": 1}])
def test_possibly_delivered_email_is_resent_unchanged(changes: dict[str, Any]) -> None:
    """Other bytes under the same key would be another mail."""
    content = a_content(cc=["bia@example.com"])
    job = a_job(content, suppressed=frozenset({"bia@example.com"}), attempts=1, **changes)

    confirmed = confirm(job)

    assert isinstance(confirmed, Confirmed)
    assert (confirmed.email.cc, confirmed.left_out) == (("bia@example.com",), ())


@pytest.mark.parametrize(
    ("html", "is_suspect"),
    [
        ("<p>Olá</p>", False),
        ("<p>He wrote: onclick=</p>", True),
        ("x" * SCREENED_AT_ONCE, False),
        ("x" * (SCREENED_AT_ONCE + 1), True),
    ],
    ids=["harmless", "spells out a handler", "short enough", "long"],
)
def test_only_a_quick_check_runs_at_once(html: str, is_suspect: bool) -> None:
    """The thorough one would block the event loop."""
    job = a_job(a_content(html=html))

    assert isinstance(stage.confirm(job), NeedsCloserLook) is is_suspect
    assert isinstance(confirm(job), Confirmed)


@pytest.mark.parametrize("html", ["", " ", "\r\n\t ", "\xa0"])
def test_html_of_white_space_counts_as_missing(html: str) -> None:
    """With a text the e-mail goes without HTML; alone it is empty."""
    assert unfit(a_job(a_content(html=html))).failure.reason == "html or text is required"
    assert isinstance(confirm(a_job(a_content(html=html, text="Olá"))), Confirmed)


@pytest.mark.parametrize("digits", ["1", "0"])
def test_reference_of_thousands_of_digits_is_read(digits: str) -> None:
    """Python reads no number of more than 4,300 digits, and browsers read any."""
    assert isinstance(confirm(a_job(a_content(html=f"&#{digits * 5_000};"))), Confirmed)


def test_script_behind_thousands_of_zeros_is_found() -> None:
    """Leading zeros mean nothing."""
    hidden = f"<a href='&#{'0' * 5_000}106;avascript:x'>x</a>"

    assert unfit(a_job(a_content(html=hidden))).failure.code == "INVALID_TEMPLATE"
