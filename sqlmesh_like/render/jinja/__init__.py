"""Jinja: a template's text → text, in a sandbox, with a map of where each part came from. Knows no nodes.

`environment` is the sandbox with dbt's tags; `templates` compiles and renders, plain templates by `fast_render`;
`source_map` marks a syntax tree and reads the marks back; `template_errors` reports what went wrong, and where.
"""
