"""Object stores by the library obstore, and HDFS behind the same interface: clients, files, and leases of tables.

`store_client` knows how a bucket is reached and what its errors mean, `hdfs_client` an HDFS; `object_files` and
`hdfs_files` show either as folders and files; `table_lease` is Hudi's own lock file of a table; `commit_guard` asks
before each commit whether the locks of the call still hold. Nothing here is imported, nor a library needed, where all
tables are on this machine.
"""
