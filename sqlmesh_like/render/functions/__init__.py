"""Functions of the project in queries: each call becomes the function's expression before anything reads the query.

`bodies` renders the files, `syntax` finds calls in a text, `expression` checks what a function contains, `library`
writes expressions in the place of calls, and `pieces` keeps where each part of the new text came from.
"""
