"""Checks and measurements of the code itself; nothing here is shipped."""
