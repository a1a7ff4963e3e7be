"""Files from the network: cached, checked, and continued where an earlier download broke off."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from motifold.files import put_in_place

_BASE = "https://raw.githubusercontent.com"
_TIMEOUT = 30  # seconds without an answer
_CHUNK = 1 << 13  # where a connection breaks, less than one chunk is lost
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416


class DownloadError(OSError):
    """A file could not be had from the network."""


def cache_folder() -> Path:
    """Where downloads are kept: the operating system's folder for caches."""
    return Path(_pooch().os_cache("motifold"))


def address(repository: str, commit: str, path: str) -> str:
    """URL of a file in a GitHub repository at one commit."""
    return f"{_BASE}/{repository}/{commit}/{path}"


def download(
    url: str,
    folder: Path,
    *,
    sha256: str | None = None,
    on_bytes: Callable[[int, int], Any] | None = None,
) -> Path:
    """The file at ``url``, from ``folder`` if it is there already.

    ``sha256`` is checked where it is known. ``on_bytes(done, total)`` is told of the progress;
    total is 0 where the server does not say.
    """
    try:
        path = _pooch().retrieve(
            url,
            known_hash=None if sha256 is None else f"sha256:{sha256}",
            fname=url.rpartition("/")[2],
            path=folder,
            downloader=_Continuing(folder, on_bytes),
        )
    except ValueError as error:  # what pooch raises for a wrong checksum
        raise DownloadError(
            f"{url} is not the file it should be (wrong sha256), so it was thrown away. Try again; "
            "if that does not help, something on the way, such as a proxy, alters it."
        ) from error
    return Path(path)


@contextmanager
def quietly() -> Iterator[None]:
    """Without pooch's own messages: it would tell of each file, and of its unknown hash."""
    logger = _pooch().get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


class _Continuing:
    """A downloader for pooch that keeps what it got in a ``.part`` file and asks for the rest.

    Other files of ours are written under a name that nobody knows; this one has to be found again.
    """

    def __init__(self, folder: Path, on_bytes: Callable[[int, int], Any] | None) -> None:
        self._folder = folder
        self._on_bytes = on_bytes

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        part = self._folder / (url.rpartition("/")[2] + ".part")
        self._fetch(url, part)
        put_in_place(part, output_file)

    def _fetch(self, url: str, part: Path) -> None:
        import requests

        if part.is_symlink():  # not ours: what it points to is somebody else's
            part.unlink()
        done = part.stat().st_size if part.exists() else 0
        headers = {"Accept-Encoding": "identity"}  # ranges count the bytes as they are sent
        if done:
            headers["Range"] = f"bytes={done}-"
        try:
            with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
                if answer.status_code == _RANGE_NOT_SATISFIABLE:  # nothing is left to get
                    return
                answer.raise_for_status()
                continued = answer.status_code == _PARTIAL_CONTENT
                self._write(answer, part, done if continued else 0)
        except requests.RequestException as error:
            kept = " What came is kept; call again to go on from there." if part.exists() else ""
            raise DownloadError(f"{url} could not be downloaded: {error}.{kept}") from error

    def _write(self, answer: Any, part: Path, done: int) -> None:
        """Append the answer's bytes to ``part`` after the first ``done``."""
        total = done + int(answer.headers.get("Content-Length", 0) or -done)
        with open(part, "ab" if done else "wb", opener=_without_links) as file:
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if self._on_bytes:
                    self._on_bytes(done, total)
            file.flush()
            os.fsync(file.fileno())
        if total and done < total:
            raise DownloadError(
                f"{answer.url} broke off after {done} of {total} bytes. What came is kept; call "
                "again to go on from there."
            )


def _without_links(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            'Downloading data needs pooch, which is not installed: pip install "motifold[data]". '
            "Or give the folder that has the files: data_home=..., or MOTIFOLD_DATA in the "
            "environment."
        ) from error
    return pooch
