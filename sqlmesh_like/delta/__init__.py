"""The delta compiler: relational algebra → SQL over changes. One file a construct; `compile` joins them."""
