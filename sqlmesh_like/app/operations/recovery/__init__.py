"""Recovery of tables: `rollback` to a given commit, `repair` to the last complete one or by rebuilding."""
