"""Server addresses as people and logs may see them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.policy.masking import HARMLESS, masked_text, masked_url, place_of, without_quoted


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ana:s3cret@db/mail", "postgresql://ana:***@db/mail"),
        ("postgresql://ana@db/mail", "postgresql://ana@db/mail"),
        ("postgresql://ana:s3@cret@db/mail", "postgresql://ana:***@db/mail"),
        ("postgresql://ana:s3/cret@db:5432/mail", "postgresql://ana:***@db:5432/mail"),
        ("postgresql://ana:s3?cret@db/mail", "postgresql://ana:***@db/mail"),
        ("postgresql://ana:s3#cret@db/mail", "postgresql://ana:***@db/mail"),
        ("postgresql://ana:s3@c/ret@db/mail", "postgresql://ana:***@db/mail"),
        ("postgresql://ana/s3cret@db/mail", "postgresql://***@db/mail"),
        (
            "postgresql://db/mail?sslmode=require&sslpassword=s3cret&passfile=/x",
            "postgresql://db/mail?sslmode=require&sslpassword=***&passfile=***",
        ),
        ("postgresql://db/mail?PassWord=s3cret", "postgresql://db/mail?PassWord=***"),
        ("postgresql://a:1,b:2/mail?s3cret", "postgresql://a:1,b:2/mail?***"),
        ("postgresql://:s3cret", "postgresql://***"),
        ("redis://:s3cret@[::1]:6379/0", "redis://:***@[::1]:6379/0"),
        ("redis://s3cret@db/0", "redis://***@db/0"),
        ("redis://db/0?password=s3cret&db=1", "redis://db/0?password=***&db=1"),
        (
            "redis+sentinel://:s3cret@a:1,b:2/svc/0?sentinel_password=s3cret",
            "redis+sentinel://:***@a:1,b:2/svc/0?sentinel_password=***",
        ),
        ("unix://:s3cret@/run/redis.sock?db=1", "unix://:***@/run/redis.sock?db=1"),
        (
            "mongodb://ana:s3cret@db/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:s3cret",
            "mongodb://ana:***@db/?authMechanism=MONGODB-AWS&authMechanismProperties=***",
        ),
        ("https://build.example/hooks/v2/run", "https://build.example/hooks/v2/run"),
        (
            "https://hooks.example/T00S3/s3cret?token=s3cret#s3cret",
            "https://hooks.example/***/***?token=***#***",
        ),
        ("sqlite:////home/ana@home/x.db", "sqlite:////home/ana@home/x.db"),
        ("kafka:9092,user:s3cret@other:9092", "***@other:9092"),
    ],
)
def test_only_known_harmless_parts_are_shown(url: str, shown: str) -> None:
    """A password is masked in any place; the rest is there to be recognised by."""
    assert masked_url(url) == shown


@given(
    st.sampled_from(["postgresql", "redis", "redis+sentinel", "mongodb", "unix", "http"]),
    st.text("/@:?#&=;%aA1 ", max_size=8),
    st.text("/@:?#&=;%aA1 ", max_size=8),
)
def test_password_never_gets_through(scheme: str, before: str, after: str) -> None:
    """With any text around it, as long as a server comes behind it."""
    secret = f"{before}Xs3cretX{after}"

    for url in (
        f"{scheme}://ana:{secret}@db/mail",
        f"{scheme}://db/mail?sslpassword=Xs3cretX{after}",
    ):
        assert "s3cret" not in masked_url(url)
        assert "s3cret" not in place_of(url)


def test_addresses_and_quotes_are_removed_from_library_errors() -> None:
    """They quote their input."""
    proxy = 'cannot connect to "http://ana:s3cret@proxy:8080/": refused'

    assert masked_text(proxy) == 'cannot connect to "http://ana:***@proxy:8080/": refused'
    assert (
        without_quoted("no port: 's3cret' or \"s3cret\" or <s3cret") == "no port: *** or *** or ***"
    )


def test_names_are_compared_in_lower_case() -> None:
    """Otherwise one of the list would never match."""
    assert {each.lower() for each in HARMLESS} == HARMLESS
