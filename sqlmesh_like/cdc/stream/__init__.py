"""Batches one after another: `ingest_run` opens a source, `batch` ingests one, `continuous` runs until stopped.

`replay` ingests dead letters again; `metrics` writes metrics for Prometheus.
"""
