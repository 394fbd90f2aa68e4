"""Guides of the modules as pages of the reference: where their links lead.  guides_test.py ROOT

Sphinx is not needed.
"""
import os
import sys
import unittest

ROOT = sys.argv.pop()
sys.path.insert(0, os.path.join(ROOT, "abi", "reference"))
sys.dont_write_bytecode = True
import guides  # noqa: E402

PAGES = {"memory/README.md": "memory.md", "sched/README.md": "schedules.md"}


def turned(text, path="memory/README.md"):
    return guides.page_text(text, path, PAGES, lambda target: "to/" + target)


class Guides(unittest.TestCase):
    def test_a_header_and_another_guide_lead_to_their_pages(self):
        self.assertEqual(turned("[pool.h](../capi/include/velo/pool.h)"),
                         "[pool.h](../headers/pool.h.md)")
        self.assertEqual(turned("see [schedules](../sched/README.md#tuning)"),
                         "see [schedules](schedules.md)")

    def test_a_picture_is_shown_and_an_address_of_the_web_stays(self):
        self.assertEqual(turned("![bytes](timeline.svg)"), "![bytes](to/memory/timeline.svg)")
        self.assertEqual(turned("[viewer](https://pytorch.org/memory_viz)"),
                         "[viewer](https://pytorch.org/memory_viz)")

    def test_the_words_of_any_other_link_stay(self):
        self.assertEqual(turned("[memory.c](../examples/c/memory.c) uses it"), "memory.c uses it")

    def test_every_stub_names_a_guide_and_every_picture_is_there(self):
        folder = os.path.join(ROOT, "abi", "reference", "guides")
        for path in guides.pages_of_guides(folder):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                guides.page_text(file.read(), path, PAGES, self.there)

    def there(self, target):
        self.assertTrue(os.path.isfile(os.path.join(ROOT, target)), target)
        return target


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
