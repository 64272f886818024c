"""This process's share of the concurrency limit of one provider."""

from math import inf

_WANTED_FOR_S = 1.0  # without a request for this time, a process needs no place


class Places:
    """This process's share of a concurrency limit: granted by the store, in use, and wanted.

    A grant is valid until the store may give it to other processes. Without a grant there are no places: a call cannot
    be declared without the store either, and two processes must not use the same place.
    """

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency  # of all processes; 0: any number
        self.taken = 0
        self._given = 0
        self._given_until = -inf
        self._wanted_at = -inf

    def want(self, now: float) -> None:
        """Somebody has something to call for, or looks for it."""
        self._wanted_at = now

    def free(self, now: float) -> float:
        """The number of free places; infinite: no limit."""
        if not self.concurrency:
            return inf
        return max(0, self._given - self.taken) if now < self._given_until else 0

    def are_taken(self, now: float) -> bool:
        """True if the store granted places, and none of them is free."""
        return now < self._given_until and self._given <= self.taken

    def are_needed(self, now: float) -> bool:
        """True if places are in use or wanted; otherwise other processes get them."""
        return self.taken > 0 or now < self._wanted_at + _WANTED_FOR_S

    def held(self, now: float) -> int:
        """The number that may be in use until the store has answered."""
        if not self.concurrency:
            return 0
        return max(self._given if now < self._given_until else 0, self.taken)

    def give(self, count: int, *, until: float) -> bool:
        """Set the number of places; True if there are fewer than before, so that others wait for the rest."""
        is_fewer = count < self._given
        self._given, self._given_until = count, until
        return is_fewer

    def give_up(self) -> None:
        """Others may have them."""
        self._given, self._given_until = 0, -inf
