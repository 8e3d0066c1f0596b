"""Releases of a project's tables: made after a run, listed, held and returned to."""
