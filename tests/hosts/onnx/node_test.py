"""ONNX's node tests through velo: each case of the operators that velo has passes, or is refused
for the reason that refusals.py states.

A case is a model of one node with inputs and expected outputs; nodes.py says which calls of velo it
is. Results are compared as ONNX's runner compares them. The test fails for a wrong result, a
refusal that is not listed, a listed case that works and an entry of the list that no case needs, so
that the list stays true of velo and of ONNX. The cases take 7 s to make, velo's part is below a
second.
"""
import collections
import copy
import os
import re
import sys
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    os.path.join(HERE, ".."),
    os.path.join(HERE, "..", "..", "..", "capi", "python")
]

from framework import need  # noqa: E402

onnx = need("onnx")
torch = need("torch")

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from nodes import OPERATORS  # noqa: E402
from onnx.backend.test.case.node import collect_testcases  # noqa: E402
from refusals import REFUSED  # noqa: E402
from velo_call import REFUSALS, Refused  # noqa: E402


def node_cases():
    """The cases of one node whose operator is mapped; models of several nodes spell a function of
    ONNX out in smaller operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows that the cases want
        cases = collect_testcases(None)
    return [
        case for case in cases if len(case.model.graph.node) == 1 and
        case.model.graph.node[0].op_type in OPERATORS and case.data_sets
    ]


def type_named(number):
    """An element type of ONNX as torch's, or its name where torch has none that velo could read."""
    name = onnx.TensorProto.DataType.Name(number).lower()
    name = {"float": "float32", "double": "float64"}.get(name, name)
    return getattr(torch, name, name)


def tensor(value):
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    value = np.array(value, copy=True)
    if value.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
    if value.dtype.isbuiltin != 1 or value.dtype.kind not in "biuf":
        raise Refused(f"element type {value.dtype}")
    return torch.from_numpy(value)


def attributes_of(node):
    found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    found = {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}
    if "to" in found:
        found["to"] = type_named(found["to"])
    return {**found, "outputs": len(node.output)}


def outputs_of(case):
    """What velo answers, by the node's outputs, or one of REFUSALS."""
    node, (inputs, _) = case.model.graph.node[0], case.data_sets[0]
    given = iter(inputs)
    arguments = [tensor(next(given)) if name else None for name in node.input]
    return OPERATORS[node.op_type](attributes_of(node), *arguments)


def difference(case, outputs):
    """What is wrong with the outputs, or nothing. Tolerances are the case's, and at least two units
    in the last place of 16 bits: ONNX's reference rounds in between."""
    named = [name for name in case.model.graph.node[0].output]
    expected = iter(case.data_sets[0][1])
    for name, got in zip(named, outputs):
        want = tensor(next(expected)) if name else None
        if want is None or got is None:
            continue
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            return f"{name}: {got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
        rounding = {torch.bfloat16: 2**-6, torch.float16: 2**-9}.get(got.dtype, 0)
        got, want = got.double().numpy(), want.double().numpy()
        if not np.allclose(got, want, max(case.rtol, rounding), case.atol, equal_nan=True):
            return f"{name} is off by {np.nanmax(abs(got - want)):.2g}"
    return ""


class Verdicts:
    """Of some cases, which pass, which are refused, and `complaints`: all that is not as listed."""

    def __init__(self, cases, refused):
        self.passed, self.refused, self.complaints = (collections.defaultdict(list), collections.
                                                      defaultdict(list), [])
        for case in cases:
            self._judge(case, [entry for entry in refused if re.fullmatch(entry.cases, case.name)])
        for entry in refused:
            if entry not in self.refused:
                self.complaints.append(f"no case is refused as listed: {entry.cases}")

    def _judge(self, case, entries):
        try:
            wrong = difference(case, outputs_of(case))
        except REFUSALS as refusal:
            text = f"{type(refusal).__name__}: {refusal}"
            known = [entry for entry in entries if re.search(entry.text, text)]
            if known:
                self.refused[known[0]].append(case.name)
            else:
                self.complaints.append(f"{case.name} is refused: {text}")
            return
        if wrong:
            self.complaints.append(f"{case.name} is wrong: {wrong}")
        elif entries:
            self.complaints.append(f"{case.name} works, and is listed: {entries[0].why}")
        self.passed[case.model.graph.node[0].op_type].append(case.name)

    def __str__(self):
        lines = [f"{sum(map(len, self.passed.values()))} cases pass: " +
                 ", ".join(f"{op} {len(names)}" for op, names in sorted(self.passed.items()))]
        lines.append(f"{sum(map(len, self.refused.values()))} are refused:")
        return "\n".join(lines + [f"  {len(names):3} {entry.why}"
                                  for entry, names in self.refused.items()])


class Nodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = node_cases()

    def case(self, name):
        return copy.deepcopy(next(case for case in self.cases if case.name == name))

    def test_every_case_passes_or_is_refused_for_a_stated_reason(self):
        self.assertEqual({case.model.graph.node[0].op_type for case in self.cases}, set(OPERATORS))
        verdicts = Verdicts(self.cases, REFUSED)
        print(verdicts)
        self.assertFalse(verdicts.complaints, "\n".join(verdicts.complaints))

    def test_a_wrong_result_is_found(self):
        case = self.case("test_relu")
        case.data_sets[0][1][0].flat[7] += 0.01
        self.assertRegex(Verdicts([case], []).complaints[0], "test_relu is wrong: y is off by 0.01")

    def test_a_refusal_that_is_not_listed_is_found(self):
        case = self.case("test_attention_4d_softcap")
        self.assertRegex(Verdicts([case], []).complaints[0], "is refused: .*no field softcap")

    def test_a_listed_case_that_works_is_found(self):
        case = self.case("test_relu")
        entry = REFUSED[0]._replace(cases="test_relu", why="once")
        self.assertEqual(
            Verdicts([case], [entry]).complaints,
            ["test_relu works, and is listed: once", "no case is refused as listed: test_relu"])


if __name__ == "__main__":
    unittest.main()
