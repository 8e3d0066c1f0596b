"""Tables that have to go back. `last_good_commit` finds where to, `undo` takes off the commits that came after it.

Needs no JVM; tables that are merge-on-read or on another machine are left to Hudi's own procedures.
"""
