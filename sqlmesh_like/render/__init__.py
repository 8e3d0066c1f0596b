"""`ParsedProject` → `RenderedProject`: Jinja is rendered, references are resolved, every line keeps its source.

`renderer` walks the project; `context` is the scope of a template, `relations` resolves `ref()` and `source()`,
`macros` finds macros; `fast_render` skips Jinja where a template only has plain calls; `adapter_functions` are
queries that a template sends to the lake, answered by `rerender` when the node is run; `semantic` resolves metrics;
`source_map` leads back to file, line and column.
"""
