"""What templates get from a lake: rows of a query as agate's table (`result_table`), and how one is printed."""
