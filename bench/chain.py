"""A chain whose first provider is dead, compared with its second one alone, to the same raw sink, in turns.

python bench/chain.py --mails 5000 --pairs 3: a quick look.
"""

from figures import Figure, figures_of, in_pairs, measure_as_asked, print_table, row
from smtp import a_sink

_CONNECTIONS = 20


def measure(mails: int, pairs: int) -> None:
    """Print the table."""
    last: dict[str, Figure] = {}
    with a_sink() as (port, _):
        options = ("--port", port, "--mails", mails, "--connections", _CONNECTIONS)

        def sent(name: str, *more: str) -> float:
            figure = figures_of("chain_ours", *options, *more)["sent"]
            last[name] = Figure(name, figure.count, figure.seconds, figure.cpu_seconds)
            return figure.per_second

        compared = in_pairs(
            "dead, then smtp / smtp alone",
            lambda: sent("a dead one, then smtp", "--dead-first"),
            lambda: sent("smtp alone"),
            rounds=pairs,
        )
    print(
        f"\nA dead provider before smtp to a raw sink, accept to sent, its breaker open, {mails:,} mails\n"
    )
    rows = [row(each, last["smtp alone"]) for each in last.values()]
    print_table(["what, last pair", "per second", "CPU us each", "x alone"], rows)
    print(f"\nWith a dead first provider / alone: {compared} (median, spread)")


if __name__ == "__main__":
    measure_as_asked(measure, __doc__, mails=20_000)
