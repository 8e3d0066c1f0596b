"""What earlier calls and commits hold of a query. `known_queries`: fingerprints of queries that need not be analyzed
again; `query_changes`: what differs between the query of a table and the one that its model has now.
"""
