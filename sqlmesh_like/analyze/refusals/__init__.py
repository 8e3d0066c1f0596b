"""What Spark refuses of the parts of a query that it writes out: arguments, tables in FROM, literals.

`refused_forms` asks them about the tree, `typed_literals` about the text; both run before the columns are known.
"""
