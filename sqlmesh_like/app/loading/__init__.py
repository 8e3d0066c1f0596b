"""From a call's request to a project that has been read, rendered and checked.

`loaded` reads it, through `project_cache`, and `template_log` takes what it says; `preflight` checks the models before
anything is read or written, and `check_cache` remembers earlier checks; `source_discovery` adds tables that ingestion
found; `last_call` is the request of the previous call.
"""
