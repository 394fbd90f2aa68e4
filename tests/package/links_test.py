"""Every relative link of the Markdown pages below a folder leads to a file, and a section it names
is there.

    links_test.py FOLDER
"""
import os
import re
import sys


def sections(path):
    with open(path, encoding="utf-8") as page:
        titles = re.findall(r"^#+ (.*)$", page.read(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def main(folder):
    dead, links = [], 0
    for place, _, names in os.walk(folder):
        for page in (os.path.join(place, name) for name in names if name.endswith(".md")):
            with open(page, encoding="utf-8") as file:
                text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
                # brackets and parentheses of a formula, which may go on in the next line
                text = re.sub(r"`(?:[^`\n]|\n(?!\n))*`", "`code`", text)
            for path, section in re.findall(r"\]\(([^()#:\s]*)(?:#([^()\s]*))?\)", text):
                links += 1
                target = os.path.join(place, path) if path else page
                if not os.path.exists(target) or section and section not in sections(target):
                    dead.append(f"{page}: {path}{'#' + section if section else ''}")
    print("\n".join(dead) or f"{links} links, none dead")
    return 1 if dead or links == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
