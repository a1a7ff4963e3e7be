"""What differs between the versions of scikit-learn that we support."""

from __future__ import annotations

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):  # type: ignore[no-untyped-def]
        """Leave the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "with_callbacks"]
