"""The shape of an ODS table: `ods_layout` (key, order, partition) and its columns as batches bring new ones.

`schema_inference` guesses types of events without a schema, `schema_evolution` fits columns or refuses,
`column_record` and `creation_contract` note in commits what was decided; `typed_parse` reads values by it.
"""
