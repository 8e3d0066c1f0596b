"""Spark SQL over the few rows of a small batch, evaluated in this process.

The formats, the rules of rows and the decision for each key are written once, as texts of Spark SQL. Spark runs them on
batches of any size; for a few events starting it takes longer than everything else, so these modules run the same texts
over rows of Python. They know less than Spark, never anything else: what is not certain to give Spark's value raises
`NotProvenError`, and Spark takes the batch.

`parser` reads a text, `expressions` compiles it to Python functions, `queries` runs SELECTs, `row_frame` has the
methods of a Spark frame that the ingestion uses; the other modules have the values and functions.
"""
