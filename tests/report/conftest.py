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


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium; with MOTIFOLD_NEEDS_BROWSER set (.ci/run) a missing one is an error."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        message = "no chromium: apt-get install chromium"
        if os.environ.get("MOTIFOLD_NEEDS_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield chromium
        chromium.close()
