"""Two frontiers of a table → its signed rows (weight −1 and +1). Reads only the files that changed.

`hudi.reading` plans which files, and why; `change_feed` picks what renders the plan by table type: `cow_change_feed`
reads base files, `mor_change_feed` change logs over them and Hudi's as-of reads; `logged_changes` writes and reads the
logs of commits. `shared_changes` reads a range once for several models.
"""
