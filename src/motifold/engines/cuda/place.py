"""Where a fit takes place, and in what kind of array its data came and its results go back.

None follows the data: arrays of CuPy and tensors of torch that are on a GPU stay there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from motifold.data import Data, Facts, Segments, scan
from motifold.data.validation import check_mask, is_list_of_segments, recording_of
from motifold.engines.cpu import CPUEngine, Problem, Workers, engine_of
from motifold.engines.cuda.device import Device
from motifold.engines.cuda.names import device_of, is_name
from motifold.engines.cuda.sources import DeviceSource
from motifold.model import Array


class Kind:
    """Arrays of a library that may be on a GPU; by this one, CuPy's."""

    module = "cupy"

    def matches(self, X: Any) -> bool:
        """Whether X is one."""
        return type(X).__module__.partition(".")[0] == self.module and hasattr(X, "shape")

    def device(self, X: Any) -> str:
        """The name of the device that has it."""
        return f"cuda:{X.device.id}"

    def array(self, X: Any, device: Device) -> Any:
        """The same memory as an array of the device's namespace."""
        return X

    def host(self, X: Any) -> Array:
        """A copy on the host."""
        return X.get()

    def back(self, array: Any, device: Device) -> Any:
        """An array of the host in this kind, on the device."""
        return device.put(array)


class TorchKind(Kind):
    """Tensors of torch on a GPU; those of the CPU are taken as NumPy arrays."""

    module = "torch"

    def matches(self, X: Any) -> bool:
        """Whether X is one."""
        return super().matches(X) and bool(getattr(X, "is_cuda", False))

    def device(self, X: Any) -> str:
        """The name of the device that has it."""
        return f"cuda:{X.device.index or 0}"

    def array(self, X: Any, device: Device) -> Any:
        """By DLPack, without a copy."""
        return device.xp.from_dlpack(X.detach())

    def host(self, X: Any) -> Array:
        """A copy on the host."""
        return X.detach().cpu().numpy()

    def back(self, array: Any, device: Device) -> Any:
        """By DLPack."""
        import torch

        return torch.from_dlpack(device.put(array))


KINDS: list[Kind] = [Kind(), TorchKind()]


def kind_of(X: Any) -> Kind | None:
    """The kind of an array that is on a GPU, or of a list of such; None for all else."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    return next((kind for kind in KINDS if kind.matches(first)), None)


def on_host(X: Any) -> Any:
    """X where NumPy can read it; whatever is not on a GPU as it is."""
    kind = kind_of(X)
    if kind is None:
        return X
    return [kind.host(part) for part in X] if isinstance(X, (list, tuple)) else kind.host(X)


class Place:
    """Where a fit takes place.

    Attributes
    ----------
    device : None for the CPU
    kind : of the data, None for what NumPy reads
    """

    def __init__(self, device: Device | None, kind: Kind | None, home: Device | None) -> None:
        self.device, self.kind, self._home = device, kind, home

    @classmethod
    def of(
        cls, X: Any, name: str | None, memory: float | None = None, precision: str = "auto"
    ) -> Place:
        """The place of data X where the user asked for the device ``name``."""
        if name is not None and not is_name(name):
            raise ValueError(
                f'device must be None, "cpu", "cuda" or "cuda:N" with the number of a GPU, not '
                f"{name!r}."
            )
        kind = kind_of(X)
        there = None if kind is None else kind.device(X[0] if isinstance(X, (list, tuple)) else X)
        wanted = there if name is None or (name == "cuda" and there) else name
        device = device_of(wanted or "cpu", memory)
        if device is not None:
            device.precision = precision
        home = device if there in (None, wanted) else device_of(there)
        return cls(device, kind, home)

    def __enter__(self) -> Place:
        if self.device is not None:
            self.device.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.device is not None:
            self.device.__exit__(kind, error, trace)

    # --- the way in and the way out -----------------------------------------------------------

    def recording_of(
        self, X: Any, lengths: Any, segments: Any, mask: Any, limit: int | None = None
    ) -> Data:
        """The recording; what is on the device stays there, what is on another one does not.

        Of what is on disk ``limit`` bytes are held in memory.
        """
        mask = on_host(mask)
        if self.kind is None or self.device is None:
            return recording_of(on_host(X), lengths, segments, mask, limit=limit)
        listed = is_list_of_segments(X)
        if listed and (lengths is not None or segments is not None):
            raise ValueError("X is a list of segments already: give no lengths or segments.")
        arrays = [self._array(part) for part in (X if listed else [X])]
        widths = {array.shape[1] for array in arrays}
        if len(widths) > 1:
            raise ValueError(
                f"All segments need the same number of features (columns), not {sorted(widths)}."
            )
        common = np.result_type(*(array.dtype for array in arrays))
        sources = [
            DeviceSource(array.astype(common, copy=False), self.device.host) for array in arrays
        ]
        if not listed:
            layout = Segments.of(len(arrays[0]), lengths, segments)
            whole = sources[0]
            sources = [whole.part(a, b) if len(layout.lengths) > 1 else whole for a, b in layout]
        if mask is None:
            return Data.of(sources, listed=listed)
        masks = check_mask(mask, [source.shape for source in sources])
        zeroed = [self._zeroed(*pair) for pair in zip(sources, masks, strict=True)]
        return Data.of(zeroed, masks, listed=listed)

    def _array(self, X: Any) -> Any:
        """X as an array of the device, of float32 or float64."""
        assert self.kind is not None
        assert self.device is not None
        if not self.kind.matches(X):
            raise TypeError("X is a list of arrays of several kinds: some are not on the GPU.")
        array = self.device.put(self.kind.array(X, self.device))
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead: X is (time, features)."
            )
        if 0 in array.shape:
            raise ValueError(
                f"X of shape {array.shape} has no entries: a minimum of 1 is required."
            )
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)

    def _zeroed(self, source: DeviceSource, observed: Any) -> DeviceSource:
        assert self.device is not None
        xp = self.device.xp
        seen = self.device.put(observed)
        return DeviceSource(xp.where(seen, source.array, source.dtype.type(0)), source.host)

    def look_for(self, parameters: Any) -> Callable[..., Facts]:
        """Who looks at the data for the problem with these parameters.

        A fit on a GPU would wait for one thread as long as for a hundred iterations.
        """
        if self.device is None:
            return scan
        return partial(scan, threads=Workers(parameters.n_jobs).n_threads)

    def safely(self, engine: CPUEngine, work: Callable[[], Any]) -> Any:
        """What the work gives; where the place can lose what it holds, it is done again."""
        return work()

    def watched(self, engine: CPUEngine, record: Any, callback: Any, kept: bool = False) -> Any:
        """The callback of a fit, by which a place may see it go on.

        ``kept``: whether somebody will ask for its state even when it has been broken off.
        """
        return callback

    def engine(self, problem: Problem, workers: Workers, solver: Any = None) -> CPUEngine:
        """The engine for a problem; with a solver, an error where it does not run there."""
        if self.device is None:
            return engine_of(problem, workers)
        if problem.model.signed:
            raise ValueError(
                "allow_negative=True runs on the CPU, not on a GPU: leave device out, and give "
                "X as a NumPy array."
            )
        from motifold.engines.cuda import engine_on

        engine = engine_on(self.device, problem, workers)
        if solver is not None:
            engine.check_solver(solver)
        return engine

    def back(self, array: Any) -> Any:
        """A result, in the kind that the data came in."""
        if self.kind is None or self._home is None or not isinstance(array, np.ndarray):
            return array
        with self._home:
            return self.kind.back(array, self._home)
