"""What a result was made with."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from motifold import __version__


def version_of(library: str) -> str | None:
    """The version of an installed library; None if there is none."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def versions(libraries: Iterable[str]) -> dict[str, str | None]:
    """Versions of motifold, Python, the libraries (None: not installed) and the system."""
    return {
        "motifold": __version__,
        "python": platform.python_version(),
        **{name: version_of(name) for name in libraries},
        "system": platform.platform(),
    }
