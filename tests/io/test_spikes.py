"""Spikes as people have them: tables, folders of phy, NWB units, lists; counted in bins."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import polars
import pytest
from scipy.sparse import issparse

from motifold.io import RecordingError, from_pynapple, from_spikes, read, suggest_bin_size

# Two units, in no order; in bins of 0.1 s from 10 s on: unit 3 twice in bin 0, 7 in bins 1 and 4.
SPIKES = [(3, 10.05), (7, 10.15), (3, 10.02), (7, 10.41)]
COUNTS = [[2, 0], [0, 1], [0, 0], [0, 0], [0, 1]]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def table(path: Path, mark: str, names: str | None = None) -> Path:
    lines = [f"{unit}{mark}{time}" for unit, time in SPIKES]
    path.write_text("\n".join([names] * (names is not None) + lines) + "\n")
    return path


def check(recording, units=("3", "7")) -> None:
    np.testing.assert_array_equal(recording.X, COUNTS)
    assert recording.feature_names == units
    assert recording.rate == pytest.approx(10)
    assert recording.starts == pytest.approx((10.0,))
    assert recording.times[4] == pytest.approx(10.4)


# --- tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t"), ("txt", " ")])
def test_text(tmp_path, ending, mark):
    named = table(tmp_path / f"a.{ending}", mark, f"neuron{mark}seconds")
    check(read(named, unit="neuron", time="seconds", bin_size=0.1))
    found = read(named, bin_size=0.1)
    check(found)
    assert "'neuron' is taken for the unit" in found.hints[0]
    assert "from 10 to 10.5 s: they begin and end with the spikes" in found.hints[-1]
    bare = table(tmp_path / f"b.{ending}", mark)
    check(read(bare, unit="0", time="1", bin_size=0.1))


def test_parquet_and_names_that_are_text(tmp_path):
    path = tmp_path / "a.parquet"
    units, times = zip(*SPIKES, strict=True)
    frame = polars.DataFrame({"cell": [f"n{u}" for u in units], "t": times, "depth": [0.5] * 4})
    frame.write_parquet(path)
    check(read(path, unit="cell", time="t", bin_size=0.1), ("n3", "n7"))
    frame.write_csv(path.with_suffix(".csv"))
    check(read(path.with_suffix(".csv"), unit="cell", time="t", bin_size=0.1), ("n3", "n7"))


def test_a_matrix_of_spikes(tmp_path):
    np.save(tmp_path / "a.npy", np.array(SPIKES))
    check(read(tmp_path / "a.npy", unit="0", time="1", bin_size=0.1))
    np.save(tmp_path / "b.npy", np.array(SPIKES).T)
    options = {"orientation": "features_first", "unit": "0", "time": "1", "bin_size": 0.1}
    check(read(tmp_path / "b.npy", **options))


def test_units_are_in_the_order_of_their_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("unit,time\n10,0.5\n9,0.1\n100,0.2\n")
    assert read(path, bin_size=0.1).feature_names == ("9", "10", "100")


def test_where_the_bins_begin_and_end(tmp_path):
    path = table(tmp_path / "a.csv", ",", "unit,time")
    found = read(path, bin_size=0.1, t_start=10.1, t_stop=11.0)
    assert (found.shape, found.starts) == ((9, 2), (10.1,))
    assert found.X.sum() == 2
    assert "2 of 4 spikes lie outside the bins" in " ".join(found.hints)
    assert not any("begin" in hint for hint in found.hints)
    with pytest.raises(RecordingError, match="no spike lies in the bins"):
        read(path, bin_size=0.1, t_start=20, t_stop=30)
    with pytest.raises(RecordingError, match="nothing from t_start 30 to t_stop 20"):
        read(path, bin_size=0.1, t_start=30, t_stop=20)


def test_negative_times_are_times(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("unit,time\n0,-0.25\n1,0.05\n")
    found = read(path, bin_size=0.1)
    assert found.starts == pytest.approx((-0.3,))
    assert found.X[:, 0].tolist() == [1, 0, 0, 0]
    assert any("negative" in hint for hint in found.hints)


# --- recognised -----------------------------------------------------------------------------


def spike_list(rng, sort_by: int):
    units = rng.integers(0, 20, 400)
    rows = np.c_[units, rng.uniform(5, 27, 400).round(3)]
    return rows[np.lexsort((rows[:, 1], rows[:, 0])) if sort_by == 0 else np.argsort(rows[:, 1])]


@pytest.mark.parametrize("sort_by", [0, 1])
@pytest.mark.parametrize("columns", [(0, 1), (1, 0)])
def test_a_list_of_spikes_is_never_taken_for_a_recording(tmp_path, rng, sort_by, columns):
    rows = spike_list(rng, sort_by)[:, columns]
    text, matrix, turned = (tmp_path / name for name in ("a.csv", "a.npy", "b.npy"))
    np.savetxt(text, rows, fmt="%g", delimiter=",")
    np.save(matrix, rows)
    np.save(turned, rows.T)
    for path in (text, matrix, turned):
        with pytest.raises(RecordingError, match=r"list of spikes.*bin_size=0") as told:
            read(path)
        assert f'unit="{columns[0]}" time="{columns[1]}"' in str(told.value)
    assert read(text, orientation="time_first").shape == (400, 2)  # said to be one


def test_recordings_of_two_features_are_not_spikes(tmp_path, rng):
    for i, X in enumerate(
        [
            rng.random((100, 2)),
            rng.poisson(1.0, (100, 2)),
            np.c_[np.arange(100) / 30, rng.poisson(1.0, 100)],  # a clock
            np.c_[rng.poisson(1.0, 100), rng.random(100)],
            np.arange(40.0).reshape(20, 2),
        ]
    ):
        path = tmp_path / f"{i}.npy"
        np.save(path, X)
        assert read(path).shape == X.shape


# --- phy ------------------------------------------------------------------------------------


@pytest.fixture
def phy(tmp_path) -> Path:
    folder = tmp_path / "sorted"
    folder.mkdir()
    units, times = (np.array(column) for column in zip(*SPIKES, strict=True))
    np.save(folder / "spike_times.npy", np.r_[np.rint(times * 30_000), 300_000].astype(np.uint64))
    np.save(folder / "spike_clusters.npy", np.r_[units, 5].astype(np.int32))
    (folder / "params.py").write_text("import os\ndat_path = 'a.dat'\nsample_rate = 30000.\n")
    (folder / "cluster_group.tsv").write_text("cluster_id\tgroup\n3\tgood\n5\tmua\n7\tgood\n")
    (folder / "cluster_KSLabel.tsv").write_text("cluster_id\tKSLabel\n3\tgood\n5\tgood\n7\tmua\n")
    return folder


def test_a_folder_of_phy(phy):
    found = read(phy, bin_size=0.1)
    check(found)
    assert '2 of 3 clusters are taken: group=good (units="all" takes all).' in found.hints
    assert read(phy, bin_size=0.1, units="all").feature_names == ("3", "5", "7")
    assert read(phy, bin_size=0.1, units="group=good|MUA, KSLabel!=mua").shape[1] == 2
    (phy / "cluster_group.tsv").unlink()
    assert read(phy, bin_size=0.1).feature_names == ("3", "5")  # Kilosort's word
    (phy / "cluster_KSLabel.tsv").unlink()
    assert "no table says which are good" in read(phy, bin_size=0.1).hints[0]


def test_params_are_parsed_and_not_run(phy, tmp_path):
    trace = tmp_path / "trace"
    run = f"open({str(trace)!r}, 'w').close()\n"
    (phy / "params.py").write_text(f"{run}sample_rate = 30000\n{run}")
    check(read(phy, bin_size=0.1))
    (phy / "params.py").write_text(f"sample_rate = [30000, {run.strip()}][0]\n")
    with pytest.raises(RecordingError, match=r"params\.py: it has no number sample_rate"):
        read(phy, bin_size=0.1)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("params.py", None, r"no params\.py.*sample_rate = 30000"),
        ("params.py", "sample_rate = (", "not Python that can be parsed"),
        ("params.py", "sample_rate = 0", "no number sample_rate"),
        ("spike_clusters.npy", None, r"there is no spike_clusters\.npy"),
        ("spike_clusters.npy", np.arange(3), "has 5 spikes, spike_clusters.npy 3"),
        ("spike_times.npy", np.zeros((5, 2)), "must be a row of whole numbers"),
        ("cluster_group.tsv", "cluster_id\tgroup\n3\tnoise\n7\tmua\n", "no unit is left by group"),
    ],
)
def test_phy_that_lies(phy, name, content, told):
    if content is None:
        (phy / name).unlink()
    elif isinstance(content, str):
        (phy / name).write_text(content)
    else:
        np.save(phy / name, content)
    with pytest.raises(RecordingError, match=told):
        read(phy, bin_size=0.1)


# --- NWB ------------------------------------------------------------------------------------


@pytest.fixture
def nwb(tmp_path) -> Path:
    path = tmp_path / "a.nwb"
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = [10.02, 10.05, 10.15, 10.41, 10.2]
        file["units/spike_times_index"] = [2, 4, 5]
        file["units/id"] = [3, 7, 8]
        file["units/quality"] = ["good", "good", "noise"]
        file["units/snr"] = [2.0, 5.0, 9.0]
        file["intervals/trials/start_time"] = [10.0, 10.3]
        file["intervals/trials/stop_time"] = [10.2, 10.5]
    return path


def test_units_of_nwb_by_their_columns(nwb):
    found = read(nwb, bin_size=0.1, units="quality=good", t_start=10.0)
    check(found, ("unit 3", "unit 7"))
    assert "2 of 3 units are taken: quality=good." in found.hints
    assert read(nwb, bin_size=0.1, units="snr>=5").feature_names == ("unit 7", "unit 8")
    trials = read(nwb, bin_size=0.1, units="all", epochs="trials")
    assert (trials.lengths, trials.starts) == ((2, 2), (10.0, 10.3))
    whole = read(nwb, bin_size=0.1)
    assert (whole.shape, whole.starts) == ((105, 3), (0.0,))
    assert any("begin at 0 s" in hint for hint in whole.hints)


@pytest.mark.parametrize(
    ("units", "told"),
    [
        ("quality", "'quality' is no condition such as quality=good"),
        ("mood=good", "no column 'mood'; there are: .*quality"),
        ("quality=best", r"no unit is left by quality=best; of 3 units quality is 'good' \(2\)"),
        ("snr>high", "'high' is no number"),
        ("__import__('os')", "is no condition"),
    ],
)
def test_conditions_that_say_nothing(nwb, units, told):
    with pytest.raises(RecordingError, match=told):
        read(nwb, bin_size=0.1, units=units)


# --- objects --------------------------------------------------------------------------------


def test_lists_and_dictionaries():
    parts = [[10.02, 10.05], np.array([10.41, 10.15])]
    check(from_spikes(parts, bin_size=0.1), ("0", "1"))
    by_name = dict(zip(["3", "7"], parts, strict=True))
    check(from_spikes(by_name, bin_size=0.1))
    found = from_spikes(by_name, bin_size=0.1, units=["7", "silent", "3"], t_start=10, t_stop=12)
    assert found.feature_names == ("7", "silent", "3")
    assert found.X.sum(axis=0).tolist() == [2, 0, 2]
    with pytest.raises(TypeError, match=r"not ndarray.*make one: \{u"):
        from_spikes(np.array(SPIKES), bin_size=0.1)
    with pytest.raises(RecordingError, match="spike 1 of unit a has no time"):
        from_spikes({"a": [0.1, np.nan]}, bin_size=0.1)
    with pytest.raises(RecordingError, match="no spikes, of 2 units"):
        from_spikes([[], []], bin_size=0.1)


def test_a_group_of_pynapple():
    nap = pytest.importorskip("pynapple")
    epochs = nap.IntervalSet([10, 20], [10.5, 20.2])
    trains = {3: nap.Ts([10.02, 10.05]), 7: nap.Ts([10.15, 10.41, 20.1])}
    group = nap.TsGroup(trains, time_support=epochs)
    found = from_spikes(group, bin_size=0.1)
    np.testing.assert_array_equal(found.X, [*COUNTS, [0, 0], [0, 1]])
    np.testing.assert_array_equal(found.X, group.count(0.1).values)
    assert (found.lengths, found.starts) == ((5, 2), (10.0, 20.0))
    with pytest.raises(RecordingError, match="From the data: bin_size="):
        from_pynapple(group)


# --- how long a bin is ----------------------------------------------------------------------


def test_bins_follow_the_data(rng):
    def bursts(width: float):
        starts = rng.uniform(0, 300, (60, 1))
        return [np.ravel(starts + n * width + width * rng.random(10)) for n in range(10)]

    short, long = (suggest_bin_size(bursts(width)).seconds for width in (0.02, 0.5))
    assert short <= 0.02 < 0.1 <= long <= 0.5


def test_a_clock_with_steps_is_no_finer(rng):
    frames = [np.sort(rng.choice(20, 12, replace=False) + 50 * rng.integers(0, 20)) for _ in "ab"]
    frames = [np.concatenate([f + 100 * k for k in range(40)]) / 30 for f in frames * 4]
    found = suggest_bin_size(frames)
    assert found.seconds >= 1 / 30 - 1e-9


def test_without_a_bin_size_one_is_suggested(tmp_path, nwb):
    path = table(tmp_path / "a.csv", ",", "unit,time")
    for file, options in ((path, {"unit": "unit"}), (nwb, {})):
        with pytest.raises(RecordingError, match=r"set bin_size, in seconds.*bin_size=0\.\d+"):
            read(file, **options)
    with pytest.raises(RecordingError, match="From the data: bin_size="):
        from_spikes([[0.1, 0.2]])


# --- sparse, and guards ---------------------------------------------------------------------


def long_spikes(rng):
    return [np.sort(rng.uniform(0, 1000, 300)) for _ in range(60)]


def test_long_counts_are_sparse_where_it_pays(rng):
    spikes = long_spikes(rng)
    found = from_spikes(spikes, bin_size=0.01, t_start=0, t_stop=1000)
    assert issparse(found.X)
    dense = from_spikes(spikes, bin_size=0.01, t_start=0, t_stop=1000, sparse=False)
    np.testing.assert_array_equal(found.X.toarray(), dense.X)
    checked = found.checked()
    assert issparse(checked.X)
    assert checked.mask is None
    assert not issparse(from_spikes(spikes, bin_size=1.0).X)  # small


def test_a_sparse_recording_comes_out_of_a_process_of_its_own(tmp_path, rng):
    spikes = long_spikes(rng)
    rows = np.concatenate([np.c_[np.full(len(t), n), t] for n, t in enumerate(spikes)])
    path = tmp_path / "a.csv"
    np.savetxt(path, rows, fmt=["%d", "%.6f"], delimiter=",", header="unit,time", comments="")
    here, there = (read(path, bin_size=0.01, isolate=isolate) for isolate in (False, True))
    assert issparse(there.X)
    assert (here.X != there.X).nnz == 0
    assert (here.starts, here.hints) == (there.starts, there.hints)
    assert here.feature_names == there.feature_names


def test_a_spike_that_is_far_off_takes_no_memory(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("unit,time\n0,0.5\n1,1e12\n")
    with pytest.raises(RecordingError, match=r"from 0\.5 to 1e\+12 s.*in\s+seconds.*max_bytes"):
        read(path, bin_size=0.01)
    with pytest.raises(RecordingError, match="max_bytes to"):
        from_spikes([[0.0], [1e12]], bin_size=0.01, sparse=True)
    assert read(path, bin_size=0.01, t_stop=2).shape == (150, 2)
