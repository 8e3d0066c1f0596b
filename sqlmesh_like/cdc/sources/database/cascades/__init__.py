"""What foreign keys do to rows in MariaDB and MySQL: the log does not have it, so these rows are read from the tables.

InnoDB itself deletes or changes the rows that refer to a deleted or changed one; only the latter is in the binary log.
`foreign_keys` says which keys do so, `firing` finds the events of the spool that make them act, `row_images` the rows
that had the values in question, `affected_rows` follows that through all levels, and `cascaded_rows` reads what was
found again and adds it to the spool. https://dev.mysql.com/doc/refman/8.4/en/innodb-and-mysql-replication.html
"""
