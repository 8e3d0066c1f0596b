"""Plans for a target whose executors are on other machines: who does the work of each sound strategy, and its jobs.

`lookup_columns` says by which columns rows of an input are looked up, `expected_jobs` counts the jobs that a strategy
starts, `job_price` is what one takes, as earlier runs have measured it, and `weighing` chooses between the strategies
once more with these. All of them yield the same rows.
"""
