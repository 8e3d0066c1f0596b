"""`sml`, and `python -m sqlmesh_like`. Owns the time before a call is parsed: Ctrl-C then ends the process silently."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line. While it is imported a signal may simply end the process: nothing has been done yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sqlmesh_like.cli.app import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
