"""Alerts and roll-ups: their share of a core when idle and at full load, and the time until a condition is found.

After them the time of redrives.
"""

import redrives
from figures import lines_of, print_table, say

_EVALUATE_S, _FOLD_S, _LOOK_S = 15, 10, 60  # the intervals in use
_TENANTS = 10_000


def measure(tenants: int = _TENANTS) -> None:
    """Print all tables."""
    say(f"operations, {tenants:,} tenants")
    lines = {each["name"]: each for each in lines_of("ours.operations", "--tenants", tenants)}
    cpu_ms = {
        name: each["cpu_seconds"] / each["count"] * 1e3
        for name, each in lines.items()
        if "cpu_seconds" in each
    }
    every = {"evaluate": _EVALUATE_S, "fold, n": _FOLD_S, "look": _LOOK_S}
    shares = {
        name: each / next(s for start, s in every.items() if name.startswith(start))
        for name, each in cpu_ms.items()
        if name.startswith(tuple(every))
    }
    print(
        f"\nAlerts and roll-ups, {tenants:,} tenants; 1,000 tenants and templates in each of 61 minutes\n"
    )
    rows = [[name, f"{cpu_ms[name]:.2f}", f"{share:.3f}"] for name, share in shares.items()]
    idle = ("evaluate, idle", *(name for name in shares if not name.startswith("evaluate")))
    rows.append(["idle, together", "", f"{sum(shares[name] for name in idle):.3f}"])
    print_table(["what", "CPU ms each", "ms of a core per second"], rows)
    print(f"\nFull load: adding up takes {cpu_ms['fold, a message'] * 1e3:.2f} us of CPU a message")
    found = [[name, f"{each['seconds']:.1f}"] for name, each in lines.items() if name not in cpu_ms]
    print(f"\nTo these, up to {_EVALUATE_S} s are added until the next evaluation\n")
    print_table(["what", "seconds"], found)
    redrives.measure()


if __name__ == "__main__":
    measure()
