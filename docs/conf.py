"""The documentation site: `make docs` builds it, offline and strictly."""

import sys
from pathlib import Path

import spherule
from spherule.threads import spin_briefly

spin_briefly()  # also in the tutorials' kernels, which inherit the environment
DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "spherule"
version = release = spherule.__version__
copyright = "the authors of spherule"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "argument_names",
    "plain_docstrings",
    "public_names",
    "layers_picture",
    "repository_pages",
]
exclude_patterns = ["_ext"]

html_theme = "pydata_sphinx_theme"
html_title = "spherule"
html_theme_options = {
    "show_prev_next": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_sidebars = {"changelog": [], "results": [], "benchmarks": []}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False

# A broken link fails the build, in pages and in annotations alike. What other packages define is
# not looked up: their inventories would have to be fetched.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!spherule\.).*"), (r"py:.*", r"spherule(\.\w+){2,}")]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Tutorials are run anew by every build, and an error in one fails it.
nb_execution_mode = "force"
nb_execution_timeout = 180
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
maximum_signature_line_length = 90
autoclass_content = "class"
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"
