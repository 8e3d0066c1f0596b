"""Batches one after another: `ingest_run` opens a source, `batch` ingests one, `continuous` goes on until stopped.

`ingest_context` is what all batches of a source share; `replay` ingests dead letters again; `metrics` writes what
Prometheus reads.
"""
