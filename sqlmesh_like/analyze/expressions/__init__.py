"""Scalar expressions: Spark's types (`types`), functions and their purity, the clock, spelling variants."""
