"""Table services. `cleaning_due` tells from the timeline whether a clean would remove anything, `clean_plan` what,
`local_clean` does it and `archive` moves what it leaves behind to the history, without a JVM; `timeline_gap` tells what
another archiver left that cannot be read. Spark runs the other services.
"""
