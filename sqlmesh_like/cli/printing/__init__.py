"""How the command line shows things: lines, tables, trees, progress. Computes nothing."""
