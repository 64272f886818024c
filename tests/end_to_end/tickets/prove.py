"""Run storms over the ticket lane, one after the other, and check that nothing is lost.

    python tests/end_to_end/tickets/prove.py --runs 20 --seed 1

The tickets and the victims depend on the seed and the number of the run. When something is wrong the marks
and the log of its workers stay, and the last lines say how to repeat the run.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # a script's own folder is not enough

from end_to_end.tickets.storm import faults_after


def main() -> int:
    """Run as often as requested; stop at the first storm that does harm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="how many storms")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first one")
    parser.add_argument("--blows", type=int, default=20, help="how many in each")
    told = parser.parse_args()
    for seed in range(told.seed, told.seed + told.runs):
        sys.stdout.write(f"storm {seed}\n")
        sys.stdout.flush()
        if faults := _faults(seed, told.blows):
            again = f"--seed {seed} --runs 1 --blows {told.blows}"
            sys.stdout.write("\n".join(["", *faults, f"again: {sys.argv[0]} {again}", ""]))
            return 1
    return 0


def _faults(seed: int, blows: int) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="carteiro-tickets-"))
    try:
        faults = faults_after(folder, seed=seed, blows=blows)
    except AssertionError as error:
        faults = [str(error)]
    if faults:
        return [*faults, f"marks and log: {folder}"]
    shutil.rmtree(folder)
    return []


if __name__ == "__main__":
    sys.exit(main())
