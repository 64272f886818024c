"""The meaning of an HTTP status without the name of an error."""

from carteiro.policy.rules.ruling import Ruling, meanings

# The answer is from a proxy or a wrong address, not from the service: it may be temporary.
# Too large (413) for a proxy: other mail still gets through.
STATUSES = meanings("""
    ACCOUNT_LATER: 401 403 407
    TIMED_OUT: 408
    MESSAGE_LATER: 413
    THROTTLED: 429
""")
STATUS_CLASSES = meanings("UNAVAILABLE: 4 5")


def ruling_of(status: int) -> Ruling | None:
    """The ruling of the status, else of its class; None: not an error."""
    return STATUSES.get(str(status)) or STATUS_CLASSES.get(str(status // 100))
