"""What every file of ours shares: written whole, told apart by fingerprints, plain inside."""

from motifold.files.archive import write_npz
from motifold.files.fingerprint import fingerprint, fingerprint_of_all
from motifold.files.lock import held
from motifold.files.places import lies_within, refuse_replacing, same_file, saved_somewhere
from motifold.files.plain import plain_scalar, plain_tree
from motifold.files.tables import csv_text
from motifold.files.versions import version_of, versions
from motifold.files.whole import (
    check_writable,
    put_in_place,
    refuse_nodes,
    write_whole,
    written_whole,
)

__all__ = [
    "check_writable",
    "csv_text",
    "fingerprint",
    "fingerprint_of_all",
    "held",
    "lies_within",
    "plain_scalar",
    "plain_tree",
    "put_in_place",
    "refuse_nodes",
    "refuse_replacing",
    "same_file",
    "saved_somewhere",
    "version_of",
    "versions",
    "write_npz",
    "write_whole",
    "written_whole",
]
