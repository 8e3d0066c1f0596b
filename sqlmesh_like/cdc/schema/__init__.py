"""The schema of an ODS table: `ods_layout` (key, order, partition) and its columns as batches add new ones.

`schema_inference` infers types of events without a schema, `schema_evolution` adapts columns or refuses,
`column_record` and `creation_contract` record the decisions in commits; `typed_parse` reads values by it.
"""
