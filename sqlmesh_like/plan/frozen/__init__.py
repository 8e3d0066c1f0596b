"""Tables with frozen partitions (`frozen_before`).

`declared` reads the config of a model, `frozen_plan` says what a run may do with such a table and refuses what would
lose its rows; `delta.frozen` has the rule by which programs respect them.
"""
