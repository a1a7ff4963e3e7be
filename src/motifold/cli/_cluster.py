"""``--cluster``: a fit on the workers of a Dask cluster, there already or made for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from motifold.estimator import CNMF

_LOCAL, _SCHEDULER = re.compile(r"local:([1-9]\d*)"), re.compile(r"\w+://\S+")


class _Cluster(click.ParamType):
    """``tcp://scheduler:8786``, or ``local:4`` for workers on this machine."""

    name = "cluster"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | int:
        """The number of workers to start, or an address; or a complaint in click's way."""
        if isinstance(value, int):
            return value
        local = _LOCAL.fullmatch(value)
        if local is not None:
            return int(local[1])
        if _SCHEDULER.fullmatch(value) is None:
            self.fail(
                f"{value!r} is no cluster: give the address of a Dask scheduler, such as "
                "tcp://host:8786, or local:4 for four workers on this machine.",
                param,
                ctx,
            )
        return str(value)


cluster_option = click.option(
    "--cluster",
    type=_Cluster(),
    metavar="ADDRESS",
    help="Fit on a Dask cluster: the address of its scheduler, tcp://host:8786, or local:4 for "
    "four worker processes on this machine.",
)


def model_class(cluster: str | int | None) -> type[CNMF]:
    """The estimator of one machine, or that of a cluster."""
    if cluster is None:
        from motifold.estimator import CNMF

        return CNMF
    from motifold.dask import CNMF as ClusterCNMF

    return ClusterCNMF


@contextlib.contextmanager
def working_on(cluster: str | int | None, model: CNMF) -> Iterator[None]:
    """The model has a client of the cluster, and workers that were started for it end with it."""
    if cluster is None:
        yield
        return
    from motifold.engines.dask.cluster import connected

    with connected(cluster) as client:
        model.client = client
        yield


def at_home(model: CNMF) -> CNMF:
    """The fitted model as one of this machine."""
    local = getattr(model, "to_local", None)
    return model if local is None else local()
