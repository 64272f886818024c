"""The whole pipeline, and our client alone, to a raw sink, and a bare aiosmtplib loop to the same one, in turns.

python bench/smtp.py --mails 5000 --pairs 3: a quick look.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from figures import HERE, Figure, figures_of, in_pairs, measure_as_asked, print_table, row

_CONNECTIONS = 20


@contextmanager
def a_sink() -> Iterator[tuple[int, int]]:
    """The port and process id of a running sink."""
    command = [sys.executable, "-m", "smtp_sink"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=HERE, text=True, stdin=pipe, stdout=pipe) as sink:
        assert sink.stdin is not None
        assert sink.stdout is not None
        try:
            yield int(sink.stdout.readline()), sink.pid
        finally:
            sink.stdin.close()


def measure(mails: int, pairs: int) -> None:
    """Print the table."""
    last: dict[str, Figure] = {}
    with a_sink() as (port, pid):
        options = ("--port", port, "--mails", mails, "--connections", _CONNECTIONS)
        environ = {"BENCH_SERVER_PIDS": str(pid)}

        def ours() -> float:
            last.update(figures_of("smtp_ours", *options, environ=environ))
            return last["accept to sent"].per_second

        def theirs() -> float:
            last.update(figures_of("smtp_peer", *options, environ=environ))
            return last["aiosmtplib"].per_second

        def client() -> float:
            last.update(figures_of("smtp_client", *options, environ=environ))
            return last["our client"].per_second

        compared = in_pairs("smtp / aiosmtplib", ours, theirs, rounds=pairs)
        alone = in_pairs("client / aiosmtplib", client, theirs, rounds=pairs)
    print(f"\nThrough smtp to a raw sink, {_CONNECTIONS} connections, {mails:,} mails\n")
    names = ("accept to sent", "claim to sent", "accept", "our client", "aiosmtplib")
    rows = [
        [*row(last[name], last["aiosmtplib"]), f"{last[name].server_cpu_us:,.1f}"] for name in names
    ]
    heads = ["what, last pair", "per second", "CPU us each", "x aiosmtplib", "CPU us of the sink"]
    print_table(heads, rows)
    print(f"\nAccept to sent / aiosmtplib: {compared} (median, spread)")
    print(f"Our client / aiosmtplib, ready-made bytes: {alone} (median, spread)")


if __name__ == "__main__":
    measure_as_asked(measure, __doc__, mails=20_000)
