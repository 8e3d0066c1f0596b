"""`sml lsp`: the Language Server Protocol for editors.

`project_index` knows what a project declares, `template_position` what the cursor stands in, `answers` what is offered,
shown and where it leads; `server` speaks the protocol by pygls, and publishes what `compile` finds.
"""
