"""What is known of Spark's functions: one record a function, which the rest of the compiler reads.

A record says which class of sqlglot's tree calls the function, what it takes and returns, whether its result is decided
by its arguments, and of an aggregate how it follows a change. Types, classification, the merge program, the
documentation and what DuckDB is trusted with are read from it; nothing here knows a query.
"""
