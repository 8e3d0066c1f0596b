"""Queries as DuckDB's SQL, where every value is Spark's to the last digit: the proof, form by form, with types.

A delta program has few forms: columns, equalities, counts, exact sums, record keys. On these the two engines agree, or
can be made to agree: a quotient of decimals is computed in whole numbers, a date plus days stays a date. `query` walks
over a query; `form_registry` is the list of all forms, and the others have what is proven of each. A form that is not
listed is not proven, and Spark computes it. Where it depends on values (an overflow that wraps or is NULL in Spark, a
year of five digits in a text), DuckDB fails instead of continuing, and Spark computes that query as well.

Invariants of each expression: DuckDB's type is of the same kind as Spark's, and a decimal has the same scale. Doubles
are never negative zero, which Spark treats as zero in comparisons and grouping: relations contain none, and no
operation here produces one. Sums of doubles depend on the order of their rows in either engine.
Spark's rules: https://spark.apache.org/docs/3.5.7/sql-ref-ansi-compliance.html (with ANSI mode off).
"""
