"""The delta compiler: relational algebra → SQL over changes. One file per construct; `compile` combines them."""
