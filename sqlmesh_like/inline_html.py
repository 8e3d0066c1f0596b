"""HTML files that send no requests: what is inline in them, and how their policy names it."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def read_asset(package: str, name: str) -> str:
    """A file in a package's folder `assets`."""
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """A script or a style as a Content-Security-Policy names it.

    >>> policy_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
