"""Tables that must return to an earlier commit. `last_good_commit` finds it, `undo` removes the commits after it.

Needs no JVM; tables that are merge-on-read or on another machine are left to Hudi's own procedures.
"""
