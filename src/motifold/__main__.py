"""``python -m motifold``: as ``motifold``."""

from motifold.cli import main

main(prog_name="motifold")
