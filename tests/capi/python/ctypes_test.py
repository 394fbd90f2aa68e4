"""The generated ctypes module against the library and against the layout lock, which compilers hold
to the headers.

    ctypes_test.py LIBVELO LAYOUT_LOCK MODULE_FOLDER C_COMPILER HEADERS
"""
import ctypes
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

LIBRARY, LOCK, FOLDER, COMPILER, HEADERS = sys.argv[1:6]
sys.path.insert(0, FOLDER)
import velo.ctypes as v  # noqa: E402


def tensor(values, shape):
    """A float32 tensor over a ctypes array, which it keeps."""
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    made = v.velo_tensor(data=ctypes.addressof(values),
                         device=v.velo_device(v.VELO_DEVICE_CPU, 0),
                         ndim=len(shape),
                         dtype=v.velo_dtype(v.VELO_DTYPE_FLOAT, 32, 1),
                         shape=sizes)
    made.keep = (values, sizes)
    return made


# For a dtype in the spec's words: the ctypes type, velo's code and bits.
ELEMENTS = {
    "f32": (ctypes.c_float, v.VELO_DTYPE_FLOAT, 32),
    "f64": (ctypes.c_double, v.VELO_DTYPE_FLOAT, 64),
    "bf16": (ctypes.c_uint16, v.VELO_DTYPE_BFLOAT, 16),
    "f16": (ctypes.c_uint16, v.VELO_DTYPE_FLOAT, 16),
    "i32": (ctypes.c_int32, v.VELO_DTYPE_INT, 32), "i64": (ctypes.c_int64, v.VELO_DTYPE_INT, 64),
    "i8": (ctypes.c_int8, v.VELO_DTYPE_INT, 8),
    "u8": (ctypes.c_uint8, v.VELO_DTYPE_UINT, 8)
}


def nested(value):
    """The numbers and the shape of an example's tensor."""
    value = value["values"] if isinstance(value, dict) else value
    shape = []
    values = [value]
    while isinstance(values[0], list):
        shape.append(len(values[0]))
        values = [item for inner in values for item in inner]
    return values, shape


def example_tensor(field, value):
    dtype = value["dtype"] if isinstance(value, dict) else field.get("dtypes", ["f32"])[0]
    kind, code, bits = ELEMENTS[dtype]
    values, shape = nested(value)
    if dtype == "bf16":  # the upper half of a float32; examples in it are exact
        values = [struct.unpack("<I", struct.pack("<f", value))[0] >> 16 for value in values]
    if dtype == "f16":
        values = [struct.unpack("<H", struct.pack("<e", value))[0] for value in values]
    made = tensor((kind * len(values))(*values), shape)
    made.dtype = v.velo_dtype(code, bits, 1)
    return made


def numbers(made):
    elements = list(made.keep[0])
    if made.dtype.code == v.VELO_DTYPE_BFLOAT:
        return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in elements]
    if made.dtype.bits == 16:
        return [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in elements]
    return elements


def bound_of(operator, example, made):
    """The spec's bound of an output, by its dtype and whether the call has a tensor of 16 bits;
    nothing where it is exact."""
    bounds, dtype = operator["error_bound"], made.dtype
    if dtype.code == v.VELO_DTYPE_BFLOAT:
        return bounds["bfloat16"]
    if dtype.code != v.VELO_DTYPE_FLOAT:
        return {}
    values = [*example["in"].values(), *example["out"].values()]
    mixed = any(isinstance(value, dict) and value.get("dtype") in ("bf16", "f16")
                for value in values)
    if dtype.bits == 32 and mixed:
        return bounds.get("float32 of mixed", bounds["float32"])
    return bounds[f"float{dtype.bits}"]


class Layout(unittest.TestCase):
    def test_offsets_and_sizes_are_the_locked_ones(self):
        text = open(LOCK, encoding="utf-8").read()
        offsets = re.findall(r"LOCK\(offsetof\((?:struct )?(\w+), (\w+)\) == (\d+)\)", text)
        sizes = re.findall(r"^(?:GROWS|FIXED)\((?:struct )?(\w+), (\d+)\)", text, re.M)
        self.assertGreater(len(offsets), 200)
        self.assertGreater(len(sizes), 30)
        for struct, field, offset in offsets:
            kind = getattr(v, struct)
            descriptor = getattr(kind, field, None) or getattr(kind, field + "_")
            self.assertEqual(descriptor.offset, int(offset), f"{struct}.{field}")
        for struct, size in sizes:
            self.assertEqual(ctypes.sizeof(getattr(v, struct)), int(size), struct)

    def test_constants_are_the_locked_ones(self):
        constants = re.findall(r"LOCK\((VELO_\w+) == (-?\d+)\)",
                               open(LOCK, encoding="utf-8").read())
        self.assertGreater(len(constants), 50)
        for name, value in constants:
            self.assertEqual(getattr(v, name), int(value), name)

    def test_a_new_struct_is_what_its_macro_in_c_makes(self):
        sized = [
            kind.__name__
            for kind in vars(v).values()
            if isinstance(kind, type) and issubclass(kind, v.Sized) and kind is not v.Sized
        ]
        self.assertGreater(len(sized), 60)
        shown = "".join(
            f"  static const {name} s{i} = {name.upper()}_INIT;\n  show(&s{i}, sizeof s{i});\n"
            for i, name in enumerate(sized))
        program = (
            "#include <stdio.h>\n#include <velo/velo.h>\n"
            "static void show(const void* at, size_t n) {\n"
            "  for (size_t i = 0; i < n; i++) printf(\"%02x\", ((const unsigned char*)at)[i]);\n"
            "  puts(\"\");\n}\nint main(void) {\n" + shown + "  return 0;\n}\n")
        with tempfile.TemporaryDirectory() as work:
            built = os.path.join(work, "initial")
            subprocess.run([COMPILER, "-x", "c", "-std=c99", f"-I{HEADERS}", "-", "-o", built],
                           input=program,
                           text=True,
                           check=True)
            lines = subprocess.run([built], stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.split()
        self.assertEqual(len(lines), len(sized))
        for name, line in zip(sized, lines):
            self.assertEqual(bytes(getattr(v, name)()).hex(), line, name)


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lib = v.load(LIBRARY)
        cls.context = v.velo_context()
        v.check(cls.lib, cls.lib.velo_context_create(None, ctypes.byref(cls.context)))
        cls.stream = v.velo_stream()
        v.check(cls.lib, cls.lib.velo_context_stream(cls.context, ctypes.byref(cls.stream)))

    @classmethod
    def tearDownClass(cls):
        cls.lib.velo_context_destroy(cls.context)

    def test_everything_the_library_describes_is_here(self):
        described = self.describe(self.lib.velo_describe)
        self.assertEqual([f["name"] for f in described["functions"]], list(v.FUNCTIONS))
        for function in described["functions"]:
            self.assertEqual(
                len(v.FUNCTIONS[function["name"]]) - 1, len(function["params"]), function["name"])
            self.assertTrue(hasattr(self.lib, function["name"]))
        for struct in described["structs"]:
            self.assertEqual([f[0].rstrip("_") for f in getattr(v, struct["name"])._fields_],
                             [f["name"] for f in struct["fields"]])
        for operator in described["operators"]:
            fields = [f[0].rstrip("_") for f in getattr(v, operator["args"])._fields_]
            self.assertEqual(fields[2:], [f["name"] for f in operator["fields"]])

    def describe(self, describe, *name):
        needed = ctypes.c_uint64()
        v.check(self.lib, describe(*name, None, 0, ctypes.byref(needed)))
        text = ctypes.create_string_buffer(needed.value)
        v.check(self.lib, describe(*name, text, len(text), None))
        return json.loads(text.value)

    def run_example(self, operator, example):
        """Runs an example with a known result; gives the outputs as lists."""
        args, outputs = getattr(v, operator["args"])(), {}
        for field in operator["fields"]:
            name, kind = field["name"], field["kind"]
            given, wanted = example["in"].get(name), example["out"].get(name)
            if kind == "tensor" and (given is not None or wanted is not None):
                made = example_tensor(field, wanted if given is None else given)
                setattr(args, name, ctypes.pointer(made))
                if wanted is not None:
                    outputs[name] = (made, nested(wanted)[0])
            elif kind == "enumeration" and given is not None:
                setattr(args, name, getattr(v, f"VELO_{field['enum']}_{given}".upper()))
            elif kind == "ints" and given is not None:
                list_of = v.velo_ints((ctypes.c_int64 * len(given))(*given), len(given))
                setattr(args, name, ctypes.pointer(list_of))
            elif given is not None:
                setattr(args, name, given)
        v.check(self.lib, getattr(self.lib, operator["function"])(self.stream, ctypes.byref(args)))
        return outputs

    def test_every_operator_gives_the_known_results_of_its_examples(self):
        described = self.describe(self.lib.velo_describe)
        for operator in described["operators"]:
            if any(field["kind"] == "tensors" for field in operator["fields"]):
                continue  # no example is a list of tensors
            known = [e for e in operator["examples"] if "out" in e]
            self.assertTrue(known, operator["name"])
            for example in known:
                outputs = self.run_example(operator, example)
                for name, (got, wanted) in outputs.items():
                    bound = bound_of(operator, example, got)
                    largest = max(map(abs, wanted))
                    for value, number in zip(numbers(got), wanted):
                        terms = {"absolute": 1, "relative": abs(number), "largest": largest}
                        delta = sum(bound.get(term, 0) * size for term, size in terms.items())
                        self.assertAlmostEqual(value,
                                               number,
                                               delta=delta,
                                               msg=f"{operator['name']}.{name}")

    def test_true_and_false_are_taken_for_flags_alone(self):
        """In structs of operators and of modules, when they are made and later, and in calls; a
        flag keeps its two values."""
        described = self.describe(self.lib.velo_describe)
        for operator in described["operators"]:
            kind = getattr(v, operator["args"])
            for field in operator["fields"]:
                name = kind._fields_[2 + operator["fields"].index(field)][0]
                if field["kind"] == "bool":
                    self.assertEqual(getattr(kind(**{name: True}), name), 1)
                elif field["kind"] in ("enumeration", "i64", "f64"):
                    with self.assertRaisesRegex(
                            TypeError, f"{kind.__name__}.{name}: expected a number, got True"):
                        kind(**{name: True})
                    with self.assertRaisesRegex(
                            TypeError, f"{kind.__name__}.{name}: expected a number, got False"):
                        setattr(kind(), name, False)
        with self.assertRaisesRegex(TypeError, "velo_pool_desc.kind: expected a number, got True"):
            v.velo_pool_desc(kind=True)
        name = ctypes.c_char_p()
        v.check(self.lib, self.lib.velo_schedule_kind_name(v.VELO_SCHEDULE_1F1B,
                                                           ctypes.byref(name)))
        self.assertEqual(name.value, b"1f1b")
        with self.assertRaisesRegex(ctypes.ArgumentError, "expected an enumerator, got True"):
            self.lib.velo_schedule_kind_name(True, ctypes.byref(name))

    def test_a_failure_carries_the_record(self):
        x, gamma, y = (ctypes.c_float * 4)(1, 2, 3,
                                           4), (ctypes.c_float * 4)(1, 1, 1,
                                                                    1), (ctypes.c_float * 4)()
        tx, tg, ty = tensor(x, [1, 4]), tensor(gamma, [3]), tensor(y, [1, 4])
        args = v.velo_rms_norm_args(x=ctypes.pointer(tx),
                                    gamma=ctypes.pointer(tg),
                                    y=ctypes.pointer(ty))
        self.assertEqual(args.epsilon, 1e-6)
        with self.assertRaisesRegex(v.VeloError,
                                    "args.gamma.shape: expected \\[4\\], got \\[3\\]") as caught:
            v.check(self.lib, self.lib.velo_rms_norm(self.stream, ctypes.byref(args)))
        self.assertEqual(caught.exception.status, v.VELO_ERR_SHAPE)

    def test_callbacks_and_the_table_work(self):
        lines = []
        log = v.velo_log_fn(lambda user, level, component, line: lines.append(line))
        desc = v.velo_context_desc(threads=1, log=log, config_json=b'{"log": "debug"}')
        context, table = v.velo_context(), ctypes.c_void_p()
        v.check(self.lib, self.lib.velo_get_api(100, ctypes.sizeof(v.velo_api),
                                                ctypes.byref(table)))
        api = ctypes.cast(table, ctypes.POINTER(v.velo_api)).contents
        self.assertGreaterEqual(api.struct_size, ctypes.sizeof(v.velo_api))
        v.check(self.lib, api.context_create(ctypes.byref(desc), ctypes.byref(context)))
        api.context_destroy(context)
        self.assertTrue(lines)

    def test_an_operator_by_name_takes_values(self):
        a, y = (ctypes.c_float * 2)(1, 2), (ctypes.c_float * 2)()
        ta, ty = tensor(a, [2]), tensor(y, [2])
        values = (v.velo_named_value * 3)()
        for value, name, given in zip(values, (b"a", b"b", b"y"), (ta, ta, ty)):
            value.name, value.value.kind = name, v.VELO_VALUE_TENSOR
            value.value.as_.tensor = ctypes.pointer(given)
        v.check(self.lib, self.lib.velo_op_call(self.stream, b"add", values, 3))
        self.assertEqual(list(y), [2, 4])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
