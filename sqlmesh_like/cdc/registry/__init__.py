"""Messages whose schema is in a registry: bytes with the schema's number in front, as Kafka Connect's converters write.

`schema_registry` asks for schemas by their number; `avro_schema` says of one what Connect's JSON converter would write
in a `schema` block, and how Spark decodes it; `wire_format` turns the messages of a batch into that converter's JSON.
Everything after that – envelopes, types, keys, dead letters – reads one form.
"""
