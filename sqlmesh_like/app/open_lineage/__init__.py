"""OpenLineage: events about what a run does with each node, with column lineage.

`configuration` creates the client if one is configured, `events` builds the client's event objects, and
`listener` sends them during a run. https://openlineage.io/docs/spec/object-model
"""
