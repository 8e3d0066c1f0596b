"""How texts become trees and trees texts. `spark` is the dialect of authors and of Spark; `tokens` what it reads
otherwise than sqlglot; `generators` writes, also for the dialect of DuckDB; `parsed_texts` keeps the
trees of texts of our own."""

from __future__ import annotations

from sqlmesh_like.dialects.generators import Write, generate_again
from sqlmesh_like.dialects.node_notes import copy_notes
from sqlmesh_like.dialects.parsed_texts import duck_template, spark_type
from sqlmesh_like.dialects.spark import FINGERPRINT, SPARK, is_comma, is_literal_with_suffix, percentile_sql

__all__ = [
    "FINGERPRINT", "SPARK", "Write", "copy_notes", "duck_template", "generate_again", "is_comma",
    "is_literal_with_suffix", "percentile_sql", "spark_type",
]  # fmt: skip
