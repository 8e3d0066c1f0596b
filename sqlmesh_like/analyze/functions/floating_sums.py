"""Sums and averages of floating numbers within a declared tolerance. Owns what is kept of them, and the error's bound.

Whatever enters a group or leaves it since its sum was last computed is a term of one sum of n terms: x where it enters,
-x where it leaves. In whatever order and grouping they are added, the result differs from the exact sum by at most
γ(n - 1) Σ|term|, with γ(k) = k u / (1 - k u) and u = 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd
edition, section 4.2). `magnitude` is Σ|term|, to which what leaves is added as well: terms may cancel, their errors do
not. `additions` is n.

Spark's own sum of the rows is one of such terms, too, and has the same bound. So has `magnitude` itself. A sum is
believed while 4 n u Σ|term| is at most its tolerance: for n u < 1/16 that is more than all three together. NaN,
infinities and overflows are in `magnitude` from then on, so that their groups are recomputed.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.functions.merging import KeptState, Merge, cast, quotient, unless_empty
from sqlmesh_like.analyze.spark_types.one_zero import FLOATING


def most_additions(tolerance: float) -> exp.Expr:
    """How many terms a sum may have, if none of them cancels, to be believed.

    >>> most_additions(1e-9).sql()
    '2251799'
    """
    return exp.Literal.number(int(tolerance * 2**51))


def _states(argument: exp.Expr, type_: str | None) -> tuple[KeptState, ...]:
    value = argument if type_ == "double" else cast(argument, "double")
    return (
        KeptState("count", value, "bigint"),
        KeptState("floating", value, "double", 0),
        KeptState("magnitude", value, "double", 0),
        KeptState("additions", value, "bigint", 0),
    )


def _is_floating(type_: str | None) -> bool:
    return type_ in FLOATING


_KEEPS = "keeps a sum, and a bound of its error by which its group is recomputed"
SUMMED_WITHIN = Merge(
    _KEEPS,
    _states,
    lambda _, count, total, *_bound: unless_empty(count, total),
    takes=_is_floating,
    is_bounded=True,
)
AVERAGED_WITHIN = Merge(
    _KEEPS,
    _states,
    lambda _, count, total, *_bound: unless_empty(count, quotient(total, count)),
    takes=_is_floating,
    is_bounded=True,
)
