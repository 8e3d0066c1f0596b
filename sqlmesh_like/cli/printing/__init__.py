"""The output of the command line: lines, tables, trees, progress. Computes nothing."""
