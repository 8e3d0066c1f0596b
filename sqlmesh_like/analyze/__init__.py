"""SQL → facts. Reads a compiled SELECT into a small relational algebra with types; decides nothing about strategies."""
