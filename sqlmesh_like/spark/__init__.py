"""The engine on Spark: a planned model → one Hudi commit. pyspark is imported only here and in `cdc`.

`spark_engine` implements the port of `run`; `jvm` starts Java with pinned jars. For a model `change_feed` gives the
signed rows between two frontiers, `program` binds them to the program's inputs and runs its steps, `writer` nets the
result to one action per key and commits it through `tables`. `frames` holds common operations on data frames.
"""
