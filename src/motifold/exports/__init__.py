"""Results for other programs: MATLAB in seqNMF's layout, plain arrays, tables, xarray, labels."""

from motifold.exports.factors import export_csv, export_mat, export_npz
from motifold.exports.labels import write_labels
from motifold.exports.matlab import fit_seqnmf

__all__ = [
    "export_csv",
    "export_mat",
    "export_npz",
    "fit_seqnmf",
    "write_labels",
]
