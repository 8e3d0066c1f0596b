"""What is wrong or likely wrong with models before a run: errors (`check`, `contracts`), warnings and `lint`."""
