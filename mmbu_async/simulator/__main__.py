"""`python -m mmbu_async.simulator`: the simulator in a process of its own."""

from __future__ import annotations

import sys

from mmbu_async.simulator.command import main

if __name__ == "__main__":
    sys.exit(main())
