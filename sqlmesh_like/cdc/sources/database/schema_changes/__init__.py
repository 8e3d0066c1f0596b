"""Statements of a database that change stored values without an event, so that their tables are read again.

MariaDB and MySQL have the statements in their log: `alter_statements` says which clause is proven to keep all values,
with the columns before and after it (`column_definitions`). PostgreSQL has none there: `table_layouts` compares what
its catalog says of a table's columns with what it said when the table was read. What is not proven is read again.
"""
