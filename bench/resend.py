"""The resend provider and a bare httpx client, both against the same twin of Resend, in turns.

python bench/resend.py --mails 2000 --pairs 3: a quick look.
"""

from itertools import count

from figures import Figure, figures_of, in_pairs, measure_as_asked, print_table, row
from resend_mails import a_twin

_CALLS = 20


def measure(mails: int, pairs: int) -> None:
    """Print the table."""
    last: dict[str, Figure] = {}
    rounds = count()
    with a_twin() as (port, environ):

        def per_second(module: str, name: str) -> float:
            options = ("--url", f"http://127.0.0.1:{port}", "--mails", mails, "--calls", _CALLS)
            first = next(rounds) * mails  # no key is used twice
            last.update(figures_of(module, *options, "--first", first, environ=environ))
            return last[name].per_second

        compared = in_pairs(
            "resend / httpx",
            lambda: per_second("resend_ours", "resend"),
            lambda: per_second("resend_peer", "httpx"),
            rounds=pairs,
        )
    print(f"\nTo a twin of Resend, {_CALLS} calls at once, {mails:,} mails\n")
    rows = [row(last[name], last["httpx"]) for name in ("resend", "httpx")]
    print_table(["what, last pair", "per second", "CPU us each", "x httpx"], rows)
    print(f"\nresend / httpx: {compared} (median, spread)")


if __name__ == "__main__":
    measure_as_asked(measure, __doc__, mails=5_000)
