"""The lines in which two texts differ. Pure."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice

_HEAD = 2  # lines that name the files of a patch
_AROUND = 2


def differing(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Lines with their sign: ``-``, ``+``, or `` `` around them; ``@`` stands for lines that are left out.

    The time grows with the square of the lines: the caller bounds them.
    """
    for line in islice(unified_diff(before, after, lineterm="", n=_AROUND), _HEAD, None):
        yield ("@", "") if line.startswith("@@") else (line[:1], line[1:])
