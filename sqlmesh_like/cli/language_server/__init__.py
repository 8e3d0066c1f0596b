"""`sml lsp`: the Language Server Protocol for editors.

`project_index` collects the declarations of a project, `template_position` finds the context of the cursor, `features`
computes completions, hovers and definitions; `server` implements the protocol with pygls, and publishes the
diagnostics of `compile`.
"""
