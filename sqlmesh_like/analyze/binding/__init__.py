"""A parsed SELECT → algebra: `binder` in order of the clauses, `scope` for names; one module a clause."""
