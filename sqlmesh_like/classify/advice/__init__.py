"""What would make a plan cheaper, tried before it is said: a rewritten clause or setting, and the plan that follows.

`rewritings` has the candidates, each with the same rows as the query; `trial` keeps those that a new plan confirms.
"""
