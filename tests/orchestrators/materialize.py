"""Runs in Dagster's environment: materializes the assets of a file of definitions, and prints what Dagster recorded.

Arguments: the file, and a selection of assets or none for all.
"""

import json
import runpy
import sys

import dagster


def main() -> None:
    definitions = runpy.run_path(sys.argv[1])["definitions"]
    run = dagster.materialize(
        definitions.assets, resources=definitions.resources, selection=sys.argv[2:] or None, raise_on_error=False
    )
    tables = {
        event.asset_key.to_user_string(): {name: entry.value for name, entry in event.materialization.metadata.items()}
        for event in run.get_asset_materialization_events()
    }
    checks = {
        check.check_name: {
            "passed": check.passed,
            "severity": check.severity.value,
            **{name: entry.value for name, entry in check.metadata.items()},
        }
        for check in run.get_asset_check_evaluations()
    }
    errors = [event.event_specific_data.error_display_string for event in run.get_step_failure_events()]
    print(json.dumps({"success": run.success, "tables": tables, "checks": checks, "errors": errors}))


main()
