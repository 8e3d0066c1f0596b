"""Where events come from: Kafka, text files, Parquet files → lines with offsets.

`event_log` is what each of them offers, `offset_range` what a batch covers, `batch_marker` the note of it in commits,
`catch_up_queue` the tables that are behind; `discover` and `route` say which table an event belongs to.
"""
