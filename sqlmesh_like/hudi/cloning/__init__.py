"""A second table over the files of a first one, and the way back.

`clone` makes it with hard links: both have the rows and the history of then, and neither sees what the other commits.
`fast_forward` gives the first table the commits that the second has beyond it.
"""
