"""Files that other tools read: dbt's `manifest.json` and `run_results.json`, and compiled SQL."""
