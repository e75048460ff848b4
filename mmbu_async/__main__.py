"""`python -m mmbu_async` is the same as `mmbu`."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. Loading takes a moment, and Ctrl-C in it is no reason for a traceback either."""
    try:
        from mmbu_async.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
