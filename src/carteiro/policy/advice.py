"""Advice on failures of one cause: the next step, and the runbook that says more. Pure."""

from collections.abc import Mapping

from carteiro.model import Category, FailureGroup, Scope, value

_FAILURES = "docs/runbooks/many-failures.md"
_GROW = "docs/runbooks/dead-letters-grow.md"
_NOTHING = "docs/runbooks/nothing-is-sent.md"
_DOUBT = "docs/runbooks/duplicates.md"


@value
class Advice:
    """The next step, in one sentence, and the page of the docs; ``name``: the sentence in other languages."""

    name: str
    action: str
    runbook: str


_FIX_AND_REDRIVE = "then redrive its dead letters."
_ADDRESSES = Advice(
    "addresses",
    "Correct the addresses, and ask the tenant for the source of its list: a redrive would fail again.",
    _GROW,
)
_CONTENT = Advice(
    "content", "Correct the content with carteiro dead edit: a redrive would fail again.", _GROW
)
_SENDER = Advice(
    "sender",
    f"Check SPF, DKIM and DMARC of the sender's domain, and the sender in the settings; {_FIX_AND_REDRIVE}",
    _FAILURES,
)
_ACCOUNT = Advice(
    "account",
    f"Check account, sender and certificate in the settings, and try the provider by hand; {_FIX_AND_REDRIVE}",
    _FAILURES,
)
_SLOWER = Advice(
    "slower", f"Send slower, by a send limit or a rate of the tenant; {_FIX_AND_REDRIVE}", _FAILURES
)
_WAIT = Advice(
    "wait",
    f"Wait, as retries are spread over time; if it lasts, use another provider, {_FIX_AND_REDRIVE}",
    _FAILURES,
)
_THEIRS = Advice("theirs", f"Wait for the recipient's side, {_FIX_AND_REDRIVE}", _GROW)
# By the first word of the rule: failures that Carteiro itself found.
_BY_RULE: Mapping[str, Advice] = {
    "in_doubt": Advice(
        "in_doubt",
        "Look for the messages at the provider before you redrive: they may have been sent.",
        _DOUBT,
    ),
    "crashes_worker": Advice(
        "crashes_worker",
        f"Find in the worker's log why it died, and fix that; {_FIX_AND_REDRIVE}",
        _GROW,
    ),
    "lifecycle": Advice(
        "lifecycle", f"Find out with carteiro explain why they waited; {_FIX_AND_REDRIVE}", _NOTHING
    ),
    "validation": _CONTENT,
    "task": Advice(
        "task",
        f"Find the exception in the worker's log, and correct the task; {_FIX_AND_REDRIVE}",
        _GROW,
    ),
}
_BY_SCOPE: Mapping[Scope, Advice] = {
    Scope.RECIPIENT: _ADDRESSES,
    Scope.MESSAGE: _CONTENT,
    Scope.SENDER: _SENDER,
    Scope.TENANT: _SENDER,
    Scope.PROVIDER: _ACCOUNT,
    Scope.DESTINATION: _THEIRS,
}
_MAY_PASS = {Category.TRANSIENT_ERROR, Category.TIMEOUT_ERROR, Category.QUOTA_ERROR}
_OURS = {Scope.PROVIDER, Scope.TENANT, Scope.SENDER}


def advice_on(group: FailureGroup) -> Advice:
    """The advice on a group: by its rule, else by its category and scope."""
    known = _BY_RULE.get(group.rule.partition(".")[0])
    if known is not None:
        return known
    if group.category not in _MAY_PASS:
        is_account = (
            group.category is Category.CONFIGURATION_ERROR and group.scope is not Scope.SENDER
        )
        return _ACCOUNT if is_account else _BY_SCOPE[group.scope]
    if group.scope not in _OURS:
        return _THEIRS if group.scope is not Scope.MESSAGE else _WAIT
    return _SLOWER if group.category is Category.QUOTA_ERROR else _WAIT
