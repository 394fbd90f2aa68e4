"""Makes the contents beside each page from the pages' titles alone, for Sphinx.

Furo asks for the contents of all pages once a page, and Sphinx copies every heading and function of
all pages each time to leave out all but the titles. Here they are left out once: half of the time
of the reference.
"""
from docutils import nodes
from sphinx import addnodes


def titles_of(contents):
    """The contents of a page without what lies under its title, but for the pages below it."""
    titles = contents.deepcopy()
    for title in titles:
        if len(title) > 1 and isinstance(title, nodes.list_item):
            below = list(title.findall(addnodes.toctree))
            if below:
                title[1][:] = below
            else:
                title.pop(1)
    return titles


def give_titles(app, page, template, context, tree):
    env, whole = app.env, context.get("toctree")
    if whole is None:
        return
    if not hasattr(app, "velo_titles"):
        app.velo_titles = {name: titles_of(contents) for name, contents in env.tocs.items()}

    def toctree(**options):
        if not options.get("titles_only"):
            return whole(**options)
        contents, env.tocs = env.tocs, app.velo_titles
        try:
            return whole(**options)
        finally:
            env.tocs = contents

    context["toctree"] = toctree


def setup(app):
    app.connect("html-page-context", give_titles, priority=100)  # before the theme asks
    return {"parallel_read_safe": True, "parallel_write_safe": True}
