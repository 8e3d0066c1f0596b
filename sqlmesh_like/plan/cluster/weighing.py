"""The choice of a strategy where executors are on other machines. Owns it; `plan.cost` owns the comparison.

A lookup in a table that the driver may not read is a job of executors; a recompute of inputs that it may read is none.
So of two strategies with the same rows the one that reads more may be the quicker one by far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmesh_like.plan.choice import chosen_by_cost
from sqlmesh_like.plan.cluster.expected_jobs import jobs_for_driver, jobs_of_executors
from sqlmesh_like.plan.cluster.job_price import JobPrice
from sqlmesh_like.plan.cost import ClusterWork, Way, preferred
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router


@dataclass(frozen=True)
class Cluster:
    """A target whose executors are on other machines, and the price of a job there."""

    router: Router
    price: JobPrice

    def weigh(self, planned: PlannedModel) -> PlannedModel:
        """The plan with who does the work of each strategy, and with the one that is clearly cheapest with its jobs.

        What history, config or an edit of the query decides stays as it is.
        """
        planned = replace(planned, price=self.price)
        before = planned.estimate
        if before is None or planned.strategy == "no_op" or planned.reconciles or planned.slices is not None:
            return planned
        compiled = planned.compiled
        usual = compiled.classification.strategy
        ways = sorted(before.ways, key=lambda way: way[0] != usual)  # of which the estimate has put another first
        full = replace(before.full, cluster=self._work(planned, ("full_refresh", before.full)))
        placed = [(name, replace(work, cluster=self._work(planned, (name, work)))) for name, work in ways]
        is_decided = (planned.strategy, planned.reasons) != chosen_by_cost(compiled, before)
        if is_decided or not any(work.has_jobs for _, work in placed):
            order = [name for name, _ in before.ways]
            placed.sort(key=lambda way: order.index(way[0]))
            return replace(planned, estimate=replace(before, ways=tuple(placed), full=full))
        after = replace(before, ways=preferred(placed), full=full)
        strategy, reasons = chosen_by_cost(compiled, after)
        return replace(planned, estimate=after, strategy=strategy, reasons=reasons)

    def _work(self, planned: PlannedModel, way: Way) -> ClusterWork:
        """Who would do the work of one of the ways, if it were chosen."""
        strategy, _work = way
        assert planned.estimate is not None
        ways = (way,) if strategy != "full_refresh" else planned.estimate.ways
        chosen = replace(planned, strategy=strategy, reasons=(), estimate=replace(planned.estimate, ways=ways))
        route, most = self.router.route(chosen), self.router.most_bytes
        if route.engine == "spark" or most is None:
            jobs = jobs_of_executors(chosen) if route.engine == "spark" else 0
            return ClusterWork(route.scans, route.engine, route.commits, jobs, self.price.seconds(is_question=False))
        jobs = jobs_for_driver(chosen, most)
        scans = "spark" if jobs else route.scans
        return ClusterWork(scans, route.engine, route.commits, jobs, self.price.seconds(is_question=True))


def cluster_of(router: Router) -> Cluster | None:
    """The cluster of a target; None if all of its work is done on one machine."""
    return None if router.shares_disk else Cluster(router, JobPrice(router.target.master))
