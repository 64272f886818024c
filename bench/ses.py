"""The ses adapter and a bare aiobotocore client, on the same twin of SES, in turns.

python bench/ses.py --mails 2000 --pairs 3: a quick look.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from figures import HERE, Figure, figures_of, in_pairs, measure_as_asked, print_table, row

_AT_ONCE = 20
_TWIN = HERE.parent / "tests" / "support" / "ses_twin.py"


@contextmanager
def _twin() -> Iterator[int]:
    """The port of a running twin, which keeps nothing."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, _TWIN], text=True, stdin=pipe, stdout=pipe) as twin:
        assert twin.stdin is not None
        assert twin.stdout is not None
        try:
            yield int(twin.stdout.readline())
        finally:
            twin.stdin.close()


def measure(mails: int, pairs: int) -> None:
    """Print the table."""
    last: dict[str, Figure] = {}
    with _twin() as port:
        options = ("--port", port, "--mails", mails, "--at-once", _AT_ONCE)

        def ours() -> float:
            last.update(figures_of("ses_calls", *options, "--adapter"))
            return last["ses adapter"].per_second

        def theirs() -> float:
            last.update(figures_of("ses_calls", *options))
            return last["bare aiobotocore"].per_second

        compared = in_pairs("ses / aiobotocore", ours, theirs, rounds=pairs)
    print(f"\nCalls of SES on a local twin, {_AT_ONCE} at once, {mails:,} mails\n")
    rows = [row(each, last["bare aiobotocore"]) for each in last.values()]
    print_table(["what, last pair", "per second", "CPU us each", "x aiobotocore"], rows)
    print(f"\nAdapter / bare client: {compared} (median, spread)")


if __name__ == "__main__":
    measure_as_asked(measure, __doc__, mails=5_000)
