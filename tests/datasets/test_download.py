"""The download path against a server on this machine, which can be made to fail."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat, wavfile

from motifold.datasets import download, fetch_songbird, fetch_spoken_digits, recordings

REPOSITORY = "/FeeLab/seqNMF/229b9b19ac3a34b8378945ec7f9e331e004bb777/"
DIGITS = (
    "/Jakobovski/free-spoken-digit-dataset/26eb9aaf76e81b692f806f9140c2d2777410d7a1/recordings/"
)


class Server:
    """Serves ``files`` by path, with ranges; ``break_after`` bytes it hangs up, once."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.break_after: int | None = None
        self.knows_ranges = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append((self.path, self.headers.get("Range")))
                body = outer.files.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                start = 0
                if outer.knows_ranges and self.headers.get("Range"):
                    start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                    if start >= len(body):
                        self.send_error(416)
                        return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body) - start))
                self.end_headers()
                sent, outer.break_after = outer.break_after, None
                self.wfile.write(body[start:] if sent is None else body[start : start + sent])

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("MOTIFOLD_DATA", raising=False)
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def server(cache, monkeypatch):
    server = Server()
    monkeypatch.setattr(download, "_BASE", server.url)
    yield server
    server.stop()


@pytest.fixture
def song(server, tmp_path, monkeypatch):
    """A small stand-in for the songbird's file, on the server."""
    path = tmp_path / "song.mat"
    rng = np.random.default_rng(0)
    content = {"SONG": rng.random((30, 400)), "NEURAL": rng.random((5, 60))}
    savemat(path, content | {"SONGfs": np.uint8(200), "VIDEOfs": np.uint8(30)})
    body = path.read_bytes()
    server.files[REPOSITORY + "MackeviciusData.mat"] = body
    monkeypatch.setattr(recordings, "_SONG_SHA256", hashlib.sha256(body).hexdigest())
    return content["SONG"].T


@pytest.fixture
def digits(server, tmp_path, monkeypatch):
    """Two takes of twenty small files each, on the server; the samples that they make."""
    rng = np.random.default_rng(0)
    pieces = []
    for take in range(2):
        for digit in range(10):
            for speaker in ("jackson", "nicolas"):
                piece = rng.integers(-3000, 3000, 200 + 10 * digit).astype(np.int16)
                name = f"{digit}_{speaker}_{take}.wav"
                wavfile.write(tmp_path / name, 8000, piece)
                server.files[DIGITS + name] = (tmp_path / name).read_bytes()
                pieces.append(piece)
    samples = np.concatenate(pieces)[:9000]
    assert len(samples) == 9000
    monkeypatch.setattr(recordings, "_N_SAMPLES", 9000)
    monkeypatch.setattr(recordings, "_DIGITS_SHA256", hashlib.sha256(samples.tobytes()).hexdigest())
    return samples


def test_downloaded_once(server, song, cache, capfd):
    for _ in range(2):
        np.testing.assert_array_equal(fetch_songbird().song, song)
    assert server.asked == [(REPOSITORY + "MackeviciusData.mat", None)]
    assert [path.name for path in cache.iterdir()] == ["MackeviciusData.mat"]
    assert capfd.readouterr().err == "", "in a log there is no bar"


def test_no_bar_when_not_wanted(song, capfd):
    fetch_songbird(progress=False)
    shown = capfd.readouterr()
    assert shown.out == shown.err == ""


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_broken_off_and_continued(server, song, cache, knows_ranges):
    size = len(server.files[REPOSITORY + "MackeviciusData.mat"])
    server.break_after = 30_000
    server.knows_ranges = knows_ranges
    with pytest.raises(OSError, match="What came is kept; call again"):
        fetch_songbird(progress=False)
    part = cache / "MackeviciusData.mat.part"
    assert 0 < part.stat().st_size < size
    kept = part.stat().st_size
    np.testing.assert_array_equal(fetch_songbird(progress=False).song, song)
    assert server.asked[-1][1] == f"bytes={kept}-"
    assert not part.exists()


def test_all_was_there_but_the_last_rename(server, song, cache):
    cache.mkdir()
    body = server.files[REPOSITORY + "MackeviciusData.mat"]
    (cache / "MackeviciusData.mat.part").write_bytes(body)
    np.testing.assert_array_equal(fetch_songbird(progress=False).song, song)


def test_a_link_planted_at_the_name_of_the_part_is_not_followed(server, song, cache, tmp_path):
    cache.mkdir()
    (tmp_path / "victim").write_text("precious")
    (cache / "MackeviciusData.mat.part").symlink_to(tmp_path / "victim")
    np.testing.assert_array_equal(fetch_songbird(progress=False).song, song)
    assert (tmp_path / "victim").read_text() == "precious"
    assert [path.name for path in cache.iterdir()] == ["MackeviciusData.mat"]


def test_wrong_checksum_leaves_nothing_behind(server, song, cache):
    good = server.files[REPOSITORY + "MackeviciusData.mat"]
    server.files[REPOSITORY + "MackeviciusData.mat"] = good[:-1] + b"?"
    with pytest.raises(OSError, match="wrong sha256"):
        fetch_songbird(progress=False)
    assert not list(cache.iterdir())
    server.files[REPOSITORY + "MackeviciusData.mat"] = good
    np.testing.assert_array_equal(fetch_songbird(progress=False).song, song)


@pytest.mark.parametrize("fetch", [fetch_songbird, fetch_spoken_digits])
def test_server_down(fetch, server, monkeypatch):
    monkeypatch.setattr(download, "_BASE", "http://127.0.0.1:9")  # the port of "discard"
    with pytest.raises(OSError, match=r"(?s)could not be downloaded.*MOTIFOLD_DATA"):
        fetch(progress=False)


def test_not_found(server):
    with pytest.raises(OSError, match=r"(?s)404.*MOTIFOLD_DATA"):
        fetch_songbird(progress=False)


def test_digits(server, digits, cache):
    for _ in range(2):
        speech = fetch_spoken_digits(progress=False)
        np.testing.assert_array_equal(np.round(speech.waveform * 32768), digits)
    assert len(server.asked) == 40
    assert [path.name for path in cache.iterdir()] == ["spoken_digits_two_speakers_8k.wav"]


def test_a_partial_set_of_digits_is_completed(server, digits, cache):
    missing = DIGITS + "4_nicolas_1.wav"
    body = server.files.pop(missing)
    with pytest.raises(OSError, match=r"(?s)4_nicolas_1.*go on from there"):
        fetch_spoken_digits(progress=False)
    server.files[missing] = body
    server.asked.clear()
    speech = fetch_spoken_digits(progress=False)
    np.testing.assert_array_equal(np.round(speech.waveform * 32768), digits)
    assert missing in dict(server.asked)
    assert len(server.asked) < 20  # the first take, at least, was not asked for again


@pytest.mark.parametrize("body", [b"<html>no</html>", None])
def test_wrong_digits_are_thrown_away(server, digits, cache, body, tmp_path):
    wavfile.write(tmp_path / "zeros.wav", 8000, np.zeros(200, np.int16))
    name = DIGITS + "0_jackson_0.wav"
    good = server.files[name]
    server.files[name] = body or (tmp_path / "zeros.wav").read_bytes()
    with pytest.raises(OSError, match="wrong sha256"):
        fetch_spoken_digits(progress=False)
    server.files[name] = good
    speech = fetch_spoken_digits(progress=False)
    np.testing.assert_array_equal(np.round(speech.waveform * 32768), digits)


def test_digits_from_the_folder_of_single_files(server, digits, tmp_path):
    folder = tmp_path / "dataset" / "recordings"
    folder.mkdir(parents=True)
    for path, body in server.files.items():
        (folder / path.rpartition("/")[2]).write_bytes(body)
    speech = fetch_spoken_digits(data_home=tmp_path / "dataset")
    np.testing.assert_array_equal(np.round(speech.waveform * 32768), digits)
    assert not server.asked
    (folder / "3_jackson_0.wav").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no 3_jackson_0.wav"):
        fetch_spoken_digits(data_home=tmp_path / "dataset")
