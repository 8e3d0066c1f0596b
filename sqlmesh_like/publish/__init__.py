"""Tables of models, sent to where people look. A stage above `engine`, which reads what changed."""
