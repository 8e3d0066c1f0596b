"""`sml`, and `python -m sqlmesh_like`. Owns the moments before a call is parsed: Ctrl-C ends them silently."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """The command line. Its import takes time: nothing is done yet, so that a signal may simply end the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sqlmesh_like.cli.app import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
