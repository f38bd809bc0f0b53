"""Plans whose pieces an engine makes: concurrent.futures, mpi4py, Dask, Ray.

    plan = tenon.plan("model.safetensors", "small.zt", cast="mxfp4", work=True)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        tenon.distributed.run(plan, pool)

The engine decides where and when, and tries again as it likes: a piece that is made returns at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ._plan import Plan
from ._verbs import _progress

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ._results import Converted
    from ._verbs import Progress


def _make(plan: Plan, piece: int) -> None:
    plan.run(piece)


def _submitter(engine: Any) -> Callable[[Plan, int], Future[None]]:
    """What starts a piece and returns its future."""
    if hasattr(engine, "get_executor"):  # a Client of Dask
        engine = engine.get_executor()
    if hasattr(engine, "submit"):
        return lambda plan, piece: engine.submit(_make, plan, piece)
    if hasattr(engine, "remote"):  # the module ray
        remote = engine.remote(_make)
        return lambda plan, piece: remote.remote(plan, piece).future()
    raise TypeError(f"expected an executor, a Client of Dask or the module ray but found {engine!r}")


def run(plan: Plan, executor: Any, *, progress: Progress = None) -> Converted:
    """Make all pieces of a plan with a work folder by an engine, and publish the output.

    executor: one of concurrent.futures, mpi4py.futures.MPIPoolExecutor or anything else with submit(), a
        Client of Dask, or the module ray

    The error of a piece is raised; then, as when a worker is killed or this process is, the output is
    untouched and the same call goes on with what is left.

    >>> import tenon, concurrent.futures
    >>> plan = tenon.plan(sample, folder / "made.zt", cast="bf16", work=True)
    >>> with concurrent.futures.ThreadPoolExecutor() as pool:
    ...     tenon.distributed.run(plan, pool).tensors
    2
    """
    from concurrent.futures import as_completed  # takes longer to load than all of this package

    folder = plan._shared_folder()
    submit, tell = _submitter(executor), _progress(progress, folder)
    costs = [piece.bytes_written for piece in plan.pieces]
    done, total = 0, sum(costs)
    futures = {submit(plan, i): i for i in sorted(range(len(plan)), key=lambda i: -costs[i])}
    try:
        for future in as_completed(futures):
            future.result()
            done += costs[futures[future]]
            if tell:
                tell(done, total)
    finally:
        for future in futures:
            future.cancel()
    return plan.finish()


__all__ = ["run"]
