"""Change events of databases → typed rows → many ODS Hudi tables."""
