"""Many seeds by one command: `python -m tests.endurance --seeds 200 --jobs 2 --out FILE.json`.

The file is written after every seed, and seeds that it has are not played again. One seed alone, in this
process: `python -m tests.endurance --seed 17 --folder FOLDER`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.endurance.plan import Plan, draw, plain
from tests.endurance.rounds import Rounds
from tests.endurance.seed import Seed


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    flags.add_argument("--seeds", type=int, default=3, help="how many")
    flags.add_argument("--first", type=int, default=0, help="the first of them")
    flags.add_argument("--jobs", type=int, default=1, help="seeds at once")
    flags.add_argument("--out", type=Path, default=None, help="JSON file with the figures")
    flags.add_argument("--seed", type=int, default=None, help="play this one alone and print its figures")
    flags.add_argument("--folder", type=Path, default=None, help="where a seed plays; kept where it fails")
    flags.add_argument("--episodes", type=int, default=None, help="only so many sessions of each seed")
    flags.add_argument(
        "--mutation", default="", choices=("", "early-ack", "no-resume-filter"), help="a defect to be found"
    )
    flags.add_argument("--plain", action="store_true", help="kills on a slow disk, and nothing else")
    given = flags.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="endurance-"))
    if given.seed is not None:
        plan = plain(given.seed) if given.plain else draw(given.seed, episodes=given.episodes)
        return _one(plan, folder, given.mutation)
    options = ["--plain"] * given.plain
    options += ["--episodes", str(given.episodes)] if given.episodes is not None else []
    options += ["--mutation", given.mutation] if given.mutation else []
    rounds = Rounds(out=given.out, folder=folder, options=tuple(options))
    return rounds.play(range(given.first, given.first + given.seeds), jobs=given.jobs)


def _one(plan: Plan, folder: Path, mutation: str) -> int:
    """The outcome as one line of JSON on standard output."""
    place = folder / f"seed-{plan.seed}"
    shutil.rmtree(place, ignore_errors=True)
    outcome = Seed(plan, place, mutation=mutation).play()
    sys.stdout.write(json.dumps(outcome.figures()) + "\n")
    if not outcome.broken:
        shutil.rmtree(place)
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    sys.exit(main())
