"""Object stores, by the library obstore: clients, files, and leases of tables that other writers honour.

`store_client` knows how a bucket is reached and what its errors mean; `object_files` shows a bucket as folders and
files; `table_lease` is Hudi's own lock file of a table; `commit_guard` asks before each commit whether the locks of the
call still hold. Nothing here is imported, nor obstore needed, where all tables are on this machine.
"""
