"""`python -m sqlmesh_like` is `sml`."""

from __future__ import annotations

import sys

from sqlmesh_like.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
