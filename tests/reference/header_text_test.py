"""Comments of headers as Markdown: what they say is what a page shows.  header_text_test.py ROOT

Sphinx is not needed: of its modules only names are asked for.
"""
import os
import re
import sys
import types
import unittest

ROOT = sys.argv.pop()
for name in ("docutils", "docutils.nodes", "docutils.statemachine", "sphinx", "sphinx.util",
             "sphinx.util.docutils"):
    sys.modules[name] = types.SimpleNamespace(nodes=None, StringList=None, SphinxDirective=object)
sys.path.insert(0, os.path.join(ROOT, "abi", "reference"))
sys.dont_write_bytecode = True
import header_text  # noqa: E402


class HeaderText(unittest.TestCase):
    def test_marks_of_markdown_are_shown_as_they_are(self):
        self.assertEqual(header_text.escaped("__tvm_ffi_velo_<op>, `a_b`, 2 * n"),
                         r"\_\_tvm\_ffi\_velo\_\<op>, `a_b`, 2 \* n")

    def test_facts_are_a_line_of_their_own_wherever_a_line_breaks(self):
        lines = header_text.function_text(
            ["Frees it. Thread", "class: any. Errors: NULL (op), MEMORY; the text says more."])
        self.assertEqual(lines, [
            "Frees it.", "",
            "Thread class: any. Errors: `VELO_ERR_NULL` (op), `VELO_ERR_MEMORY`; the text says "
            "more."
        ])

    def test_every_function_of_the_adapters_names_its_codes_in_full(self):
        text = header_text.read(header_text.header_path(ROOT, "adapters.h"))
        for name in re.findall(r"VELO_API\s+\w+\s+(\w+)\(", text):
            comment = header_text.before_declaration(text, name)
            *text_lines, facts = header_text.function_text(comment)
            self.assertTrue(facts.startswith("Thread class:"), (name, facts))
            self.assertNotRegex(" ".join(text_lines), "Errors:|Thread", name)
            self.assertNotRegex(facts, "(?<!VELO_ERR_)\\b(" + header_text.CODES + r")\b", name)


if __name__ == "__main__":
    unittest.main()
