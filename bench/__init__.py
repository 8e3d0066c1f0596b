"""Where we win and where we lose, as ratios within one run. Run by `make bench`, or `python -m bench SUITE`."""
