"""Values of rows as JSON and as one line. Owns how a decimal, a time or bytes are written, wherever rows are shown."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal


def plain(value: object) -> object:
    """A value in a form that JSON can represent."""
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return moment.replace(tzinfo=None).isoformat() + "Z"
        case date():
            return value.isoformat()
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return str(value)
        case timedelta():
            return str(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            as_dict = getattr(value, "asDict", None)  # a struct of Spark
            return plain(as_dict(recursive=True)) if as_dict else [plain(item) for item in value]
    return value


def flat(value: object) -> str:
    """A value on one line, as tables show it."""
    shown = plain(value)
    return json.dumps(shown, ensure_ascii=False) if isinstance(shown, dict | list | bool) else str(shown)
