"""Where events come from: Kafka, text files, Parquet files → lines with offsets.

`event_log` is their common interface, `offset_range` what a batch covers, `batch_marker` its record in commits,
`catch_up_queue` the tables that are behind; `discover` and `route` decide which table an event belongs to.
"""
