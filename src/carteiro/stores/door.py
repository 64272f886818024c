"""Who is let in: known ids and keys are answered as they were, closed tenants and spent limits turn messages away."""

from typing import NamedTuple

from carteiro import model
from carteiro.policy.quota import QuotaCounts
from carteiro.stores.columns import moment


class First(NamedTuple):
    """What an idempotency key stands for."""

    digest: str
    answer: model.Replayed


class Door:
    """Judges one batch, item by item: each sees what those before it left."""

    def __init__(
        self,
        known: dict[model.MessageId, model.Replayed],
        is_disabled: dict[model.TenantId, bool],
        firsts: dict[tuple[model.TenantId, str], First],
        tallies: dict[model.TenantId, QuotaCounts],
        now: int,
    ) -> None:
        self._known = known
        self._is_disabled = is_disabled
        self._firsts = firsts
        self._tallies = tallies
        self._at = moment(now)
        self._counted: set[model.TenantId] = set()
        self.keys: list[
            tuple[object, ...]
        ] = []  # tenant, key, digest, message, recipient, request: to be stored

    def refusal(self, message: model.NewMessage) -> model.AcceptAnswer | None:
        """The answer to what is not let in; None counts it, and `let_in` must follow."""
        known = self._known.get(message.id)
        if known is not None:
            return known
        is_disabled = self._is_disabled.get(message.tenant)
        if is_disabled is None:
            return model.TenantUnknown(message.tenant)
        if is_disabled:
            return model.TenantDisabled(message.tenant)
        if message.key is None and message.limits is None:
            return None
        return self._asked_before(message) or self._over_limit(message)

    def let_in(self, message: model.NewMessage, recipient: model.RecipientId | None) -> None:
        """Know the message and its key from now on."""
        answer = model.Replayed(message.id, self._at, recipient, message.request_id)
        self._known[message.id] = answer
        if message.key is not None:
            key, digest = message.key.key, message.key.digest
            self._firsts[message.tenant, key] = First(digest, answer)
            told = (message.id, recipient, message.request_id)
            self.keys.append((message.tenant, key, digest, *told))

    def counts(self) -> list[tuple[object, ...]]:
        """The counts to be stored: tenant, window, its start, how many."""
        return [
            (each, *row) for each in sorted(self._counted) for row in self._tallies[each].rows()
        ]

    def _asked_before(self, message: model.NewMessage) -> model.Replayed | model.KeyConflict | None:
        key = message.key
        first = self._firsts.get((message.tenant, key.key)) if key is not None else None
        if key is None or first is None:
            return None
        return first.answer if first.digest == key.digest else model.KeyConflict(first.answer.id)

    def _over_limit(self, message: model.NewMessage) -> model.OverLimit | None:
        """The limit that stands in the way; if there is none, the message is counted."""
        if message.limits is None or not message.limits.has_any:
            return None
        tally = self._tallies[message.tenant]
        refusal = tally.judge(message.limits)
        if refusal is None:
            tally.count()
            self._counted.add(message.tenant)
        return refusal
