"""`sml lsp`: the Language Server Protocol for editors.

`project_index` knows what a project declares, `template_position` what the cursor is in, `answers` computes
completions, hovers and definitions; `server` implements the protocol with pygls, and publishes the findings of
`compile`.
"""
