"""Sphinx's configuration of the reference. Run by the target `reference`, which gives the version
(-D) and the root of the tree (VELO_ROOT); the pages lie beside this file in the build's folder.
Nothing it writes asks for a network: no script, font or style comes from elsewhere, and formulas
are MathML.
"""
import os
import sys

from sphinx.errors import ConfigError

try:
    import furo  # noqa: F401
    import myst_parser  # noqa: F401
except ImportError as missing:
    raise ConfigError(
        f"{missing}; the reference needs: apt-get install python3-sphinx python3-myst-parser furo"
    ) from None

sys.path.insert(0, os.path.dirname(__file__))

project = "velo"
author = "the velo authors"
html_title = "velo"
extensions = ["myst_parser", "header_text", "names", "guides", "contents"]
myst_enable_extensions = ["colon_fence"]
root_doc = "index"
exclude_patterns = ["examples"]
velo_root = os.environ["VELO_ROOT"]

smartquotes = False  # sizes are written [..., n]
nitpicky = True  # a name without a place is a warning, and warnings are errors
nitpick_ignore = [("c:identifier", name) for name in
                  ("int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "velo_api")]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["velo.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "tango"
pygments_dark_style = "native"
