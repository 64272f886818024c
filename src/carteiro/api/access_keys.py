"""API keys and admin tokens: made here, shown once, known afterwards by their hash alone."""

import hashlib
import secrets

# So that people and secret scanners know one when they see it; what it opens is up to the store,
# so that a token of before, which began as a key does, still opens.
PREFIX = "ck_"
TOKEN_PREFIX = "ca_"  # noqa: S105 - how one begins, not one
_RANDOM_BYTES = 24
_HINT_CHARS = 6


def make_key() -> str:
    """A new key of a tenant, that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def make_token() -> str:
    """A new token of administrators, that nobody can guess."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hint_of(key: str) -> str:
    """How a key begins: enough for people to tell their keys apart, too little to guess one."""
    return key[: len(PREFIX) + _HINT_CHARS]


def hash_key(key: str) -> str:
    """What is stored of a key: SHA-256, in hex.

    Fast and without salt on purpose: a key has 192 random bits, so there is no dictionary to try.
    Looking a hash up takes no constant time and need not: whoever could choose its first
    characters could invert SHA-256.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
