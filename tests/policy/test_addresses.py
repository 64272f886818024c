"""Addresses: validity, normal form, and masking in logs."""

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from carteiro.policy.addresses import judge_address, mask, mask_text

_LOCAL = st.text("aZ0.!#'+-_", min_size=1, max_size=66) | st.sampled_from(["Info", "postmaster"])
_LABEL = st.text("aZ09-x_", min_size=1, max_size=65)
_TLD = st.sampled_from(["com", "BR", "test", "local", "invalid", "c", "c0", "xn--p1ai", "onion"])
_ADDRESSES = st.builds(
    lambda local, labels, tld: f"{local}@{'.'.join([*labels, tld])}",
    _LOCAL,
    st.lists(_LABEL, max_size=5),
    _TLD,
)


def by_the_library(text: str) -> str | None:
    """The library's answer about an address."""
    try:
        return validate_email(
            text, check_deliverability=False, strict=True, test_environment=True
        ).normalized
    except EmailNotValidError:
        return None


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ana@example.com", "ana@example.com"),
        ("Ana.Maria+notas@Example.COM", "Ana.Maria+notas@example.com"),
        ("throttle-3@sandbox.test", "throttle-3@sandbox.test"),
        ("joão@exemplo.com.br", "joão@exemplo.com.br"),
        ("ana@CAFÉ.com", "ana@café.com"),
        ("INFO@example.com", "info@example.com"),
        ("a" * 64 + "@example.com", "a" * 64 + "@example.com"),
    ],
)
def test_address_has_one_normal_form(text: str, normal: str) -> None:
    """The domain is folded to lower case, the local part is not changed."""
    assert judge_address(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ana",
        "@example.com",
        "ana@",
        "ana@example",
        "ana@localhost",
        "ana@exam ple.com",
        "ana@example.com\n",
        "ana\r\nBcc: eva@example.com",
        "ana..maria@example.com",
        ".ana@example.com",
        "ana@-example.com",
        "ana@exa--mple-.com",
        "ana@example.invalid",
        "Ana <ana@example.com>",
        "ana@example.com,eva@example.com",
        "a" * 65 + "@example.com",
        "ana@" + "a" * 64 + ".com",
        "ana@" + "a." * 130 + "com",
        "a" * 100_000,
        "ana@\x00example.com",
    ],
)
def test_invalid_address_is_refused(text: str) -> None:
    """Only one bare address passes."""
    assert judge_address(text) is None


@given(_ADDRESSES)
@example("ana@ex--ample.com")
@example("a" * 64 + "@" + "b" * 63 + ".com")
def test_quick_check_agrees_with_the_library(text: str) -> None:
    """The pattern for plain addresses decides and normalises as the library would."""
    assert judge_address(text) == by_the_library(text)


@given(st.text())
def test_any_text_can_be_checked(text: str) -> None:
    """The answer is a normal form or None."""
    assert judge_address(text) == by_the_library(text)


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("user@example.com", "u***@e***.com"),
        ("ana@mail.exemplo.com.br", "a***@m***.br"),
        ("ana@localhost", "a***@l***"),
        ("ana@[127.0.0.1]", "a***@***"),
        ("ana@example.my secret", "a***@e***"),
        ('"a@b"@example.com', "***@e***.com"),
        ("a secret", "***"),
        ("@", "***@***"),
        ("", "***"),
    ],
)
def test_masked_address_keeps_two_letters_and_the_ending(address: str, masked: str) -> None:
    """Enough to recognise, too little to send to; garbage shows nothing."""
    assert mask(address) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("no address", "no address"),
        ("to user@example.com.", "to u***@e***.com."),
        ("<ana@example.com>, eva@x.org", "<a***@e***.com>, e***@x***.org"),
        ("mailto:ana@example.com?x=1", "mailto:a***@e***.com?x=1"),
        ("u=ana%40example.com", "u***@e***.com"),
        ("'o'brien@example.com'", "***@e***.com'"),
        ("@@ana@example.com", "@@a***@e***.com"),
        ("ana@[127.0.0.1] refused", "a***@*** refused"),
        ('"ana maria"@example.com', "***@e***.com"),
        ("eva@x.org!ana@example.com", "e***@e***.com"),
        ("redis://***@cache.example:6379/0 is down", "redis://***@cache.example:6379/0 is down"),
        ("at http://***@x.example/?to=ana@example.com", "at http:***@e***.com"),
        ("***@example.com", "***@e***.com"),
    ],
)
def test_every_address_in_a_text_is_masked(text: str, masked: str) -> None:
    """The rest of the text stays."""
    assert mask_text(text) == masked


@given(st.lists(_ADDRESSES | st.text("ab.*<>\"':,é\n"), max_size=5))
def test_masking_is_idempotent(words: list[str]) -> None:
    once = mask_text(" ".join(words))

    assert mask_text(once) == once


@given(st.text(), st.sampled_from(["ana.maria@example.com", "x-secret@sandbox.test"]), st.text())
def test_address_never_survives_in_a_text(before: str, address: str, after: str) -> None:
    """With any text around it."""
    assert address not in mask_text(f"{before}{address}{after}")


def test_masking_a_hostile_text_is_fast() -> None:
    """The cost grows with the length of the text alone: these would not end otherwise."""
    for text in ("a" * 200_000 + "@", "@" * 200_000, '"' * 200_000 + "@", "a@" * 100_000):
        assert len(mask_text(text)) <= len(text) + 6
