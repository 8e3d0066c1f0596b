"""OpenLineage: events of what a run does with each node, with the columns that its columns come from.

`configuration` makes the client where somebody has configured it, `events` says what happened in its classes, and
`listener` sends that while a run goes on. https://openlineage.io/docs/spec/object-model
"""
