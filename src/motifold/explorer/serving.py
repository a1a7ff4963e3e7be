"""A server on this machine alone, for whoever has the token in the page's address.

The token is the first part of every path, so that whatever is asked for without it (pages, their
scripts, websockets) is not there. All that the page needs is served from here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from panel.io.resources import set_resource_mode
from panel.io.server import get_server
from tornado.ioloop import IOLoop

from motifold.report.markup import tag

ADDRESS = "127.0.0.1"
_PAGE = "explore"
_TRIES = 5  # another program may take a port between our finding and our binding it


class Served:
    """A page that is being served, from a thread of its own.

    Parameters
    ----------
    make : makes the page, once for every window that is opened
    title : of the window
    port : 0 takes any that is free
    """

    def __init__(self, make: Callable[[], Any], title: str, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self._stopped = threading.Event()
        for _ in range(_TRIES if port == 0 else 1):
            ready: Future[asyncio.AbstractEventLoop] = Future()
            self.port = port or _free_port()
            task = (make, title, self.port, self.token, ready, self._stopped)
            self._thread = threading.Thread(target=_serve, args=task, daemon=True)
            self._thread.start()
            try:
                self._loop = ready.result()
                return
            except OSError as error:
                failed = error
        raise OSError(
            failed.errno,
            f"port {self.port} of {ADDRESS} cannot be had: {failed.strerror}. Give another one",
        )

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/{_PAGE}"

    def wait(self) -> None:
        """Until it is stopped; Ctrl-C gets through."""
        self._stopped.wait()

    def stop(self) -> None:
        """Take the page down."""
        if not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _serve(
    make: Callable[[], Any], title: str, port: int, token: str, ready: Any, stopped: threading.Event
) -> None:
    """What the thread does."""
    # A browser asks for an icon, which there is not: nothing for the terminal, nor is the token.
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with set_resource_mode("server"):  # scripts and styles come from here, not from a network
            server = get_server(
                {_PAGE: make},
                title={_PAGE: title},
                port=port,
                address=ADDRESS,
                prefix=token,
                websocket_origin=[f"{ADDRESS}:{port}"],
                ico_path="none",
                loop=IOLoop.current(),
            )
            server.start()
            ready.set_result(loop)
            loop.run_forever()
            server.stop()
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)
    finally:
        stopped.set() if ready.done() and ready.exception() is None else None
        loop.close()


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port


def open_browser(url: str) -> None:
    """Show the page, by way of a file that only this user can read.

    The arguments of a browser can be seen by everybody on the machine, and the token is in them.
    """
    folder = Path(tempfile.mkdtemp(prefix="motifold-"))
    file = folder / "explore.html"
    head = tag("meta", http_equiv="refresh", content=f"0; url={url}")
    link = tag("p", tag("a", "The explorer", href=url))
    private = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(private, "w", encoding="utf-8") as page:
        page.write(f"<!DOCTYPE html>{tag('head', head)}{link}")
    webbrowser.open(file.as_uri())
