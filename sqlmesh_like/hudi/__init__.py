"""Hudi tables as files, read without a JVM: timeline → commits → file slices → states and facts. No pyspark, no DuckDB.

`storage` opens folders; `timeline` lists completed `commits` and their file slices, `read_instant` and `missing_files`
say which of them a reader sees; `change_log` names the files of signed rows; `reading` plans which of all these a read
takes; `history` answers the planner (frontiers, fingerprints, schemas by `avro_schema`), `time_travel` for a past
instant; `table_reader` reads rows of Parquet files; `file_sizing` and `bucket_count` decide how large files become.
"""
