"""Problems of models that are found before a run: errors (`check`, `contracts`), warnings and `lint`."""
