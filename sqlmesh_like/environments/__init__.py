"""Environments: tables of an edited project beside those of production, in the same warehouse.

`environment` is the value, which tables it has and which commit of production each was cloned at; `environment_file`
is the object in the environment's folder that holds it, and where its tables are.
"""
