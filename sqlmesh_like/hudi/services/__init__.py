"""Table services, told from the timeline: `cleaning_due` whether a clean would remove anything, `timeline_gap` what an
archiver left that cannot be read. Spark runs the services; nothing here does, or needs a JVM.
"""
