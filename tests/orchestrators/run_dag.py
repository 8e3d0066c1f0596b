"""Runs in Airflow's environment: reads a folder of DAGs as Airflow does, runs the DAG `tables`, and prints its tasks.

Argument: the folder. The last line of standard output is an object with the `problems` of reading, each task's
`downstream` tasks and `states` after the run. With LOAD_ONLY set nothing is run.
"""

import json
import os
import sys

from airflow.dag_processing.dagbag import DagBag


def main() -> None:
    bag = DagBag(sys.argv[1])
    answer = {"problems": bag.import_errors, "downstream": {}, "states": {}}
    if dag := bag.dags.get("tables"):
        answer["downstream"] = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
        if "LOAD_ONLY" not in os.environ:
            run = dag.test()
            answer["states"] = {task.task_id: str(task.state) for task in run.get_task_instances()}
    print(json.dumps(answer))


main()
