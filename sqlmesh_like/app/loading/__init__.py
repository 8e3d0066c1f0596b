"""From a call's request to a project that is read, rendered and checked.

`loaded` reads it, through `project_cache`; `preflight` checks the models before anything is read or written, and
`check_cache` knows what has been checked before; `source_discovery` adds tables that ingestion found;
`last_call` is what an earlier call asked for.
"""
