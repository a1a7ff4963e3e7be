"""The engine of a cluster, by Dask: shards of time on its workers, the motifs at the centre."""
