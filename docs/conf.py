"""Sphinx: how the pages are built. `make docs` does it; CONTRIBUTING says what is written where."""

from __future__ import annotations

import os
import re
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

import matplotlib  # noqa: E402

matplotlib.use("Agg")

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402

import motifold  # noqa: E402

project = "motifold"
author = "The motifold developers"
project_copyright = "2026, the motifold developers. MIT licence"
version = release = motifold.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    # Ours, in _ext.
    "equations",
    "command_line",
    "gallery_without_data",
    "pictures",
    "examples_using",
]
exclude_patterns = [
    "_build",
    "_ext",
    "pictures",
    "gallery/**.py",
    "gallery/**.ipynb",
    "gallery/**.zip",
]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!motifold).*")
]  # no inventories of others: they need a network

# --- pages ----------------------------------------------------------------------------------

myst_enable_extensions = [
    "amsmath",
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3
myst_dmath_double_inline = True
html_math_renderer = "equations"

# --- the reference --------------------------------------------------------------------------

autodoc_typehints = "none"  # the docstrings say the types in words, with shapes
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_use_plots = False
viewcode_line_numbers = True
# Types link to their pages: those of the classes that the reference lists. Others' have none here.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS} | {
    name.rpartition(".")[2]: f"{module}.{name}"
    for page in sorted((HERE / "api").glob("*.md"))
    for module, listed in re.findall(
        r"currentmodule:: (\S+)\n\n\.\. autosummary::\n(.*?)```", page.read_text(), re.DOTALL
    )
    for name in re.findall(r"^   ([A-Z]\w*)$", listed, re.MULTILINE)
}
# Prompts and what is printed are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_selector = ", ".join(
    f"div.{kind} pre"
    for kind in ("highlight-python", "highlight-sh", "highlight-default", "doctest")
)

# --- the gallery ----------------------------------------------------------------------------

# As the tests do: the recordings may lie beside the project.
beside = HERE.parent.parent / "shared" / "data"
if beside.is_dir():
    os.environ.setdefault("MOTIFOLD_DATA", str(beside))
os.environ.setdefault("TQDM_DISABLE", "1")

from gallery_without_data import left_out, runnable_examples  # noqa: E402

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": runnable_examples(HERE.parent / "examples"),
    "ignore_pattern": left_out(),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("motifold",),
    "nested_sections": False,
    "within_subsection_order": "gallery_without_data.OrderOfReading",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 10,
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "show_memory": False,
    "copyfile_regex": "",
    "capture_repr": (),
}
warnings.filterwarnings("ignore", message=re.escape("FigureCanvasAgg is non-interactive"))

# --- where the source is --------------------------------------------------------------------

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
repository = PROJECT["urls"].get("Repository")  # none, as long as there is no public address

# --- the look -------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "motifold"
html_static_path = ["_static"]
html_css_files = ["motifold.css"]
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"  # fit() in the list of a page, not CNMF.fit()
html_theme_options = {
    "logo": {"text": "motifold"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if repository:
    icon = {"name": "Repository", "url": repository, "icon": "fa-solid fa-code-branch"}
    html_theme_options["icon_links"] = [icon]
    html_theme_options["navbar_end"] = ["search-button", "theme-switcher", "navbar-icon-links"]
html_sidebars = {"index": [], "getting-started": [], "benchmarks": [], "changelog": []}
html_context = {"default_mode": "auto"}
