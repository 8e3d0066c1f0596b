"""`semantic_models:`, `metrics:` and `saved_queries:` of properties YAML → `SemanticLayer`.

`layer` goes through all entries: `shapes` reads them key by key, `config` their settings by folder, `semantic_models`,
`metrics` and `saved_queries` say what each means; `declarations` are the values. What they read is resolved by
`render.semantic`. Nothing computes them.
"""
