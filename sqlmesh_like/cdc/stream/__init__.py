"""Batches one after another: `ingest_run` opens a source, `batch` ingests one, `continuous` goes on until stopped.

`replay` ingests dead letters again; `metrics` writes what Prometheus reads.
"""
