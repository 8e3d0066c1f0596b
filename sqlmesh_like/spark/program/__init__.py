"""A delta program on Spark: `view_bindings` binds its inputs to snapshots and changes, `spark_steps` creates its steps.

Steps are SQL over temporary views; results are signed rows, which `writer` commits.
"""
