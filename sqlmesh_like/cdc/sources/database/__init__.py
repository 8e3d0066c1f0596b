"""A database as a source: its tables and its log are read without Kafka.

`server` asks the database by SQL (which tables, where does its log end), `readiness` whether it can be read, and which
statement helps. `connector_settings` are Debezium's, `engine` is its process, which runs `EventSpool.java` and writes
events to the lake's own folder, `spool` has the paths of that folder and removes what is no longer needed, and
`capture` drives all of it for an ingestion. `cascades` reads what foreign keys change without the log.
Design: docs/decisions/17-database-spool.md.
"""
