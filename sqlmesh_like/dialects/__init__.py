"""How texts become trees and trees texts. `spark` is the dialect of authors and of Spark; `tokens` what it reads
otherwise than sqlglot; `generators` writes, also for the dialect of DuckDB."""

from __future__ import annotations

from sqlmesh_like.dialects.generators import Write, generate_again
from sqlmesh_like.dialects.spark import FINGERPRINT, SPARK, is_comma, percentile_sql

__all__ = ["FINGERPRINT", "SPARK", "Write", "generate_again", "is_comma", "percentile_sql"]
