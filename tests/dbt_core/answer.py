"""Runs in dbt's own environment: calls it one call after the other, and prints what it answers."""

import io
import json
import sys
from contextlib import redirect_stdout


def answer(runner, words):
    message = io.StringIO()
    with redirect_stdout(message):
        outcome = runner.invoke([*words, "--profiles-dir", ".", "--quiet"])
    if words[0] == "show":
        shown = [one.agate_table for one in outcome.result.results] if outcome.success else []
        rows = [[str(v) if v is not None else None for v in row.values()] for table in shown for row in table.rows]
        return {"success": bool(outcome.success), "rows": rows, "message": message.getvalue()[-500:]}
    if words[0] == "ls":
        return {"success": bool(outcome.success), "names": list(outcome.result or [])}
    results = getattr(outcome.result, "results", None) or []
    nodes = [[one.node.resource_type.value, one.node.name, str(one.status.value), one.failures] for one in results]
    return {"success": bool(outcome.success), "nodes": nodes, "message": message.getvalue()[-500:]}


def main():
    from dbt.cli.main import dbtRunner

    first = dbtRunner().invoke(["parse", "--profiles-dir", ".", "--quiet"])
    runner = dbtRunner(manifest=first.result)
    print()
    print(json.dumps([answer(runner, words) for words in json.loads(sys.argv[1])]))


main()
