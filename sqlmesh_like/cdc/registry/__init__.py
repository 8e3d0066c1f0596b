"""Messages whose schema is in a registry: bytes with the schema's number in front, as Kafka Connect's converters write.

`frames` knows what messages begin with, `schema_registry` asks for schemas (of AWS by `glue`); `avro_schema` and
`protobuf_schema` read them, in Connect's terms. Messages become the JSON that Connect's converter would write: Avro by
Spark in `wire_format`, in this process by `avro_reader`, to the same texts (`decoded_rows`); Protobuf in both by
`protobuf_reader`. Everything after that – envelopes, types, keys, dead letters – reads one form.
"""
