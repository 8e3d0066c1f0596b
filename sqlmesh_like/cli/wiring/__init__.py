"""Parts put together for a command: catalog, planner and engine of a target (`lake`, `duck_lake`), and the like.

`read_session` starts Spark for readers; `publish_setup`, `report_setup` and `unit_test_setup` build what these commands
need; `docs_content` and `source_discovery` gather what others show.
"""
