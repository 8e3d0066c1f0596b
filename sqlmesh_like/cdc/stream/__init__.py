"""Batches one after another: `ingest_run` opens a source, `batch` ingests one, `continuous` runs until stopped.

`ingest_context` is what all batches of a source share; `replay` ingests dead letters again; `metrics` writes metrics
for Prometheus.
"""
