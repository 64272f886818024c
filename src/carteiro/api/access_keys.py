"""API keys and admin tokens: made here, shown once, known afterwards by their hash alone."""

import hashlib
import secrets

# People and secret scanners recognize a key by its prefix. The store decides what it opens, so that
# an older token with the prefix of a key still works.
PREFIX = "ck_"
TOKEN_PREFIX = "ca_"  # noqa: S105 - how one begins, not one
_RANDOM_BYTES = 24
_HINT_CHARS = 6


def make_key() -> str:
    """A new random key of a tenant."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def make_token() -> str:
    """A new random token of administrators."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hint_of(key: str) -> str:
    """The beginning of a key: enough to distinguish keys, too short to guess one."""
    return key[: len(PREFIX) + _HINT_CHARS]


def hash_key(key: str) -> str:
    """The stored form of a key: SHA-256, in hex.

    Fast and without salt on purpose: a key has 192 random bits, so there is no dictionary to try.
    The lookup of a hash need not take constant time: to choose its first characters, a caller would
    have to invert SHA-256.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
