"""Reads abi/spec the way the checks need it: plainly, and not through the generator that the checks
are to hold.

load(folder) gives a Spec: functions {name: since}, and the entries of every kind by name for
comparison.
"""
import json
import os


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Spec:
    """The written ABI. entries: {(kind, name): the JSON entry}; functions: {exported name: release
    that brought it}; slots: their order in the function table."""

    def __init__(self, folder):
        modules = [read(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
                   if name.endswith(".json") and name not in ("ops.json", "slots.json")]
        ops = read(os.path.join(folder, "ops.json"))
        self.release = ops["release"]
        self.slots = read(os.path.join(folder, "slots.json"))["functions"]
        self.entries = {}
        self.functions = {}
        for kind in ("handles", "errors", "enums", "callbacks", "structs", "functions"):
            for entry in (entry for module in modules for entry in module.get(kind, [])):
                self._add(kind, entry["name"], entry)
        self.families = [
            read(os.path.join(folder, "ops", name + ".json")) for name in ops["families"]
        ]
        for family in self.families:
            for entry in family.get("enums", []):
                self._add("enums", f"{family['name']}.{entry['name']}", entry)
            for entry in family["ops"]:
                self._add("ops", entry["name"], entry)
                self.functions["velo_" + entry["name"]] = entry["since"]
        for module in modules:
            self.functions.update(
                (entry["name"], entry["since"]) for entry in module.get("functions", []))

    def _add(self, kind, name, entry):
        if (kind, name) in self.entries:
            raise ValueError(f"{kind} {name} appears twice in the spec")
        self.entries[(kind, name)] = entry


def load(folder):
    return Spec(folder)
