"""Figures of the front page come from bench/results, and the renderer notices one that does not.

    results_test.py ROOT
"""
import os
import sys
import unittest

ROOT = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(ROOT, "bench"))

import render_results as results  # noqa: E402

MACHINES = ("zen4", "granite_rapids", "emerald_rapids")


class Results(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as page:
            self.text = page.read()

    def test_every_figure_of_the_front_page_comes_from_a_results_file(self):
        self.assertEqual(list(results.check(self.text)), [])

    def test_a_changed_figure_and_one_outside_the_table_are_seen(self):
        before, table, after = results.readme_parts(self.text)
        changed = table.replace("x |", "1x |", 1)
        self.assertEqual(len(list(results.check(before + changed + after))), 1)
        self.assertEqual(len(list(results.check(before + table + after + "\nIt takes 3 ns.\n"))), 1)

    def test_results_files_are_as_the_recorder_writes_them(self):
        for name in MACHINES:
            path = os.path.join(ROOT, "bench", "results", name + ".json")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), results.text_of(results.read(path)), name)

    def test_goals_are_judged_by_ratio_share_and_time(self):
        goals = results.read(results.FOLDER / "goals.json")
        row = {
            "name": "rms_norm", "dtype": "f32", "shape": "8192x4096", "residency": "dram",
            "threads": 1, "unit": "GB/s", "velo": 20, "peer": 10, "peer_name": "torch", "ratio": 2.0
        }
        self.assertEqual(results.goals_of(row, goals["goals"], "zen4"), ["rms-norm-f32"])
        self.assertEqual(
            results.goals_of({**row, "ratio": 1.0, "share": 0.9}, goals["goals"], "zen4"),
            ["rms-norm-f32, missed", "rms-norm-f32-share"])
        call = {"name": "add", "shape": "64", "threads": 1, "unit": "ns", "velo": [100, 151]}
        self.assertEqual(results.goals_of(call, goals["calls"], "zen4"), ["call-inline, missed"])

    def test_reasons_stand_below_rows_that_are_there(self):
        for name in MACHINES:
            for run in results.read(results.FOLDER / "results" / f"{name}.json")["runs"]:
                for short in run.get("short", []):
                    self.assertTrue(any(
                        all(results.matches(want, row.get(key, ""))
                            for key, want in short["row"].items()) for row in run["rows"]), short)
                    self.assertIn(short["why"], results.render([{
                        "machine": name, "kind": "zen4", "runs": [run]}]))

    def test_every_row_names_a_goal_that_is_there(self):
        goals = results.read(results.FOLDER / "goals.json")
        known = {goal["id"] for key, listed in goals.items() if key != "about" for goal in listed}
        for name in MACHINES:
            for run in results.read(results.FOLDER / "results" / f"{name}.json")["runs"]:
                named = {row["goal"] for row in run["rows"] if "goal" in row}
                self.assertLessEqual(named, known, run["bench"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
