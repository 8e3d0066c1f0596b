"""Two frontiers of a table → its signed rows (weight −1 and +1). Reads only the files that changed.

`change_feed` picks the reader by table type: `cow_change_feed` compares file slices, `mor_change_feed` as-of reads;
`logged_changes` reads the change log where commits have one. `shared_changes` reads a range once for several models.
"""
