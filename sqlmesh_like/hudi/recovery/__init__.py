"""Tables that must return to an earlier commit. `last_good_commit` finds it, `undo` removes the commits after it.
`savepoints` keeps commits to return to; `interrupted_restore` recognizes a restore by Hudi that did not complete.
`commit_files` tells which files a commit needs, `clean_limits` corrects what cleans say about it.

Needs no JVM; tables on another machine are left to Hudi's own procedures.
"""
