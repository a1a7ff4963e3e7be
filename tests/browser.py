"""A browser, where there is one."""

from __future__ import annotations

import os
import shutil

import pytest

FLAGS = (
    "--no-sandbox",  # as root Chromium starts only so
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing(message: str) -> None:
    """Skip; with MOTIFOLD_NEEDS_BROWSER set (.ci/run) what is missing is an error."""
    if os.environ.get("MOTIFOLD_NEEDS_BROWSER"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        missing("no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield chromium
        chromium.close()
