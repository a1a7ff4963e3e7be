"""Which motif of one fit is which of another: the door to ``motifold.findings.matching``."""

from motifold.findings.matching import MotifMatch, match_motifs, motif_similarity

__all__ = ["MotifMatch", "match_motifs", "motif_similarity"]
