"""`semantic_models:`, `metrics:` and `saved_queries:` of properties YAML → `SemanticLayer`.

`layer` processes all entries: `config` reads their settings by folder, `semantic_models`,
`metrics` and `saved_queries` say what each means; `declarations` are the values. What they read is resolved by
`render.semantic`. Metrics are never computed.
"""
