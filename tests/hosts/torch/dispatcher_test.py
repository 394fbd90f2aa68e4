"""velo_torch_register in torch itself: every operator by torch.ops.velo, views and devices, meta
and fake tensors, threads, refusals.

Usage: dispatcher_test.py (VELO_LIBRARY and VELO_ADAPTERS name the libraries). The adapter alone,
without velo.torch; bits against the plain C API are the mini host's
(tests/hosts/torch/torch_test.cpp).
"""
import ctypes
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from framework import need  # noqa: E402

torch = need("torch")
if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 9):
    print(f"not tested: the fifth adapter needs torch 2.9, here is {torch.__version__}")
    sys.exit(77)

VELO, ADAPTERS = ctypes.CDLL(os.environ["VELO_LIBRARY"]), ctypes.CDLL(os.environ["VELO_ADAPTERS"])
STATE = 15
# of integers, as arguments of kernels in C; and torch_exception_get_what
LISTS = torch.__version__ >= "2.10"
DTYPES = {
    "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64,
    "i32": torch.int32, "i64": torch.int64, "i8": torch.int8, "u8": torch.uint8
}
ops = torch.ops.velo

# The first lines of a process of its own.
OPEN = """
import ctypes, os, sys, threading, torch
velo, adapters = ctypes.CDLL(os.environ["VELO_LIBRARY"]), ctypes.CDLL(os.environ["VELO_ADAPTERS"])
def register(library=adapters):
    text = ctypes.create_string_buffer(2048)
    status = library.velo_torch_register()
    library.velo_adapters_last_error(text, ctypes.c_uint64(2048), None)
    return status, text.value.decode()
x, gamma = torch.randn(4, 64), torch.randn(64)
"""


def alone(program, *arguments):
    """Runs a program of its own. Returns its output and its stderr."""
    done = subprocess.run([sys.executable, "-c", OPEN + program, *arguments],
                          capture_output=True,
                          text=True,
                          timeout=300)
    assert done.returncode == 0, done
    return done.stdout.strip(), done.stderr


def described():
    size = ctypes.c_uint64()
    VELO.velo_describe(None, ctypes.c_uint64(0), ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    VELO.velo_describe(text, size, None)
    return json.loads(text.value)


DOCUMENT = described()
ENUMS = {e["name"]: {v["name"]: v["value"] for v in e["values"]}
         for o in [DOCUMENT, *DOCUMENT["operators"]] for e in o.get("enums", [])}


def tensor_of(field, given):
    dtype, listed = given.get("dtype") if isinstance(given, dict) else None, field.get(
        "dtypes", ["f32"])
    dtype = DTYPES[dtype or ("f32" if "f32" in listed else listed[0])]
    values = given.get("values") if isinstance(given, dict) else given
    if values is not None:
        return torch.tensor(values, dtype=dtype)
    low, high = given.get("range", (-1, 1))
    if dtype.is_floating_point:
        return torch.empty(given["shape"], dtype=torch.float32).uniform_(low, high).to(dtype)
    return torch.randint(int(low), int(high) + 1, given["shape"], dtype=dtype)


def examples():
    """Operator, its fields by name, and the arguments and known outputs of each of its examples."""
    torch.manual_seed(3)
    for operator in DOCUMENT["operators"]:
        fields = {f["name"]: f for f in operator["fields"]}
        for example in operator["examples"]:
            given = {}
            for name, value in example["in"].items():
                kind = fields[name]["kind"]
                given[name] = (tensor_of(fields[name], value)
                               if kind == "tensor" else ENUMS[fields[name]["enum"]][value] if kind
                               == "enumeration" else bool(value) if kind == "bool" else value)
            yield operator["name"], fields, given, example.get("out", {})


def call(operator, overload, given):
    """The results of a call with those of `given` that the overload has, copied, by field."""
    function = getattr(getattr(ops, operator), overload)
    names = [a.name for a in function._schema.arguments]
    taken = {
        k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items() if k in names
    }
    for argument in function._schema.arguments:
        if argument.name not in taken and not argument.has_default_value():
            taken[argument.name] = None if "Optional" in str(argument.type) else 0  # else a handle
    made = function(**taken)
    return (made if isinstance(made, tuple) else () if made is None else (made,)), taken


def most_of(operator, overload, outputs, fields, given):
    """The outputs that these inputs have, of a call by this overload or by the default one."""
    try:
        return outputs, *call(operator, overload, given)
    except RuntimeError as refusal:
        if "expected the inputs that this output needs" not in str(refusal):
            raise
    required = [n for n in outputs if not fields[n].get("optional")]
    return required, *call(operator, "default", given)


class Dispatcher(unittest.TestCase):
    def refused(self, text, function, *arguments, **named):
        with self.assertRaises(RuntimeError) as caught:
            function(*arguments, **named)
        self.assertRegex(str(caught.exception), text)

    def test_every_operator_by_every_overload(self):
        seen = set()
        for operator, fields, given, known in examples():
            with self.subTest(operator, given=[*given]):
                overloads = getattr(ops, operator).overloads()
                largest = "full" if "full" in overloads else "default"
                outputs = [n for n, f in fields.items() if f.get("dir") in ("out", "inout")]
                adds = bool(given.get("accumulate"))
                arguments = {
                    a.name for a in getattr(getattr(ops, operator), largest)._schema.arguments
                }
                rest = [n for n in outputs if n not in arguments]
                if not LISTS and any(fields[name]["kind"] == "ints" for name in given):
                    self.refused("int\\[\\]", call, operator, largest, given)
                    continue
                rest, made, taken = most_of(operator, largest, rest, fields, given)
                self.assertEqual(len(made), len(rest))
                written = {
                    **dict(zip(rest, made)),
                    **{n: taken[n] for n in outputs if taken.get(n) is not None}
                }
                required = [n for n in rest if not fields[n].get("optional")]
                for name, value in zip(required, call(operator, "default", given)[0]):
                    self.assertTrue(torch.equal(value, written[name]), name)
                blank = {n: torch.full_like(v, 7) for n, v in written.items() if n not in given}
                _, taken = call(operator, "out", {**blank, **given})
                for name in written:
                    self.assertTrue(adds or torch.equal(taken[name], written[name]), name)
                written = {n: taken[n] for n in outputs if taken.get(n) is not None}
                for name, value in known.items():
                    if name in written:
                        want = tensor_of(fields[name], value).to(written[name].dtype)
                        torch.testing.assert_close(written[name], want, equal_nan=True)
                        seen.add(operator)
        self.assertGreaterEqual(len(seen), 15)

    def test_torch_counts_what_is_written(self):
        """Autograd knows by a tensor's count of writes that what it saved is no longer there."""
        for operator, fields, given, _ in examples():
            if not LISTS and any(fields[name]["kind"] == "ints" for name in given):
                continue
            for overload in getattr(ops, operator).overloads():
                function = getattr(getattr(ops, operator), overload)
                largest = "full" if "full" in getattr(ops, operator).overloads() else "default"
                whole = getattr(getattr(ops, operator), largest)._schema.arguments
                made = [
                    n for n, f in fields.items()
                    if f.get("dir") in ("out", "inout") and n not in {a.name for a in whole}
                ]
                made, results, _ = most_of(operator, largest, made, fields, given)
                if overload == "full" and len(made) < len(function._schema.returns):
                    continue
                blank = dict(zip(made, results))
                arguments = {
                    **{
                        a.name: None if "Optional" in str(a.type) else 0
                        for a in function._schema.arguments
                    }, **blank, **given
                }
                arguments = {
                    a.name: arguments[a.name]
                    for a in function._schema.arguments
                    if not a.has_default_value() or a.name in given
                }
                before = {
                    n: t._version for n, t in arguments.items() if isinstance(t, torch.Tensor)
                }
                function(**arguments)
                written = {
                    a.name
                    for a in function._schema.arguments
                    if a.alias_info is not None and a.alias_info.is_write
                }
                counted = {n for n, version in before.items() if arguments[n]._version > version}
                self.assertEqual(counted, written & before.keys(), f"{operator}.{overload}")
        x, gamma = torch.randn(4, 64, requires_grad=True), torch.ones(64)
        with torch.inference_mode():
            untracked = torch.zeros(4, 64)
        self.refused("velo::rms_norm: y: expected torch to count a write, got an error",
                     ops.rms_norm.out, x, gamma, untracked)
        self.assertEqual(untracked.abs().sum(), 0)
        saved = x.exp()
        ops.rms_norm.out(torch.randn(4, 64), gamma, saved[:2].new_zeros(4, 64))
        saved.sum().backward()
        saved = x.exp()
        ops.rms_norm.out(torch.randn(2, 64), gamma, saved.detach()[:2])
        self.assertTrue(torch.is_grad_enabled())
        self.refused("modified by an inplace operation", saved.sum().backward)

    def test_views(self):
        x, gamma = torch.randn(64, 4), torch.randn(64)
        want = ops.rms_norm(x.t().contiguous(), gamma)
        self.assertTrue(torch.equal(ops.rms_norm(x.t(), gamma), want))
        self.assertTrue(torch.equal(ops.rms_norm(torch._neg_view(x.t()), gamma), -want))
        z = torch.complex(x.t().contiguous(), x.t().contiguous())
        self.assertTrue(torch.equal(ops.rms_norm(z.conj().imag, gamma), -want))
        row = x.t()[:1].expand(4, 64)
        self.assertTrue(torch.equal(ops.rms_norm(row, gamma), ops.rms_norm(row.contiguous(),
                                                                           gamma)))
        odd = torch.frombuffer(bytearray(4 * 64 * 4 + 1), dtype=torch.uint8)[1:].view(torch.uint8)
        self.assertEqual(ops.rms_norm(torch.empty(0, 64), gamma).shape, (0, 64))
        self.refused("args.x.dtype: expected float32, bfloat16 or float16, got uint8", ops.rms_norm,
                     odd[:64], gamma)
        y = torch.zeros(4, 64)
        self.refused("velo::rms_norm: expected no negated view beside tensors", ops.rms_norm.out,
                     torch._neg_view(x.t()), gamma, y)
        self.refused("velo::rms_norm: expected no negated view", ops.rms_norm.out, x.t(), gamma,
                     torch._neg_view(y))
        self.refused(r"args.y.strides: expected compact", ops.rms_norm.out, x.t(), gamma,
                     torch.zeros(64, 4).t())
        self.assertTrue(torch.is_grad_enabled())

    def test_refusals(self):
        x, gamma = torch.randn(4, 64), torch.randn(64)
        self.refused(r"^velo::rms_norm: args.gamma.shape: expected \[64\], got \[5\]$",
                     ops.rms_norm, x, gamma[:5])
        self.refused(r"args.x.dtype: expected float32, bfloat16 or float16, got float64",
                     ops.rms_norm, x.double(), gamma)
        self.refused(r"args.x.dtype: expected a dtype velo knows, got number \d+ of torch's",
                     ops.rms_norm, x.to(torch.complex64), gamma)
        self.refused(r"args.x.device: expected meta, as another tensor of the call has, got cpu",
                     ops.rms_norm, x, gamma.to("meta"))
        self.refused(r"args.epsilon: expected", ops.rms_norm, x, gamma, -1.0)
        memory = torch.zeros(300)
        for rank in (
                9, 12, 60
        ):  # beside an input that is copied compact, which is when ranks were taken on trust
            deep = torch.randn(4, 4)[(None,) * (rank - 2)].transpose(-1, -2)
            self.refused(rf"args.b.ndim: expected 0 to 8 dimensions, got {rank}", ops.add,
                         torch.randn(4, 4).t(), deep)
        self.refused("args.y: expected", ops.add.out, memory[:256].view(4, 64), x,
                     memory[8:264].view(4, 64))
        self.refused(r"epsilon.*is missing|expected.*float|Expected", ops.rms_norm, x, gamma,
                     "small")
        for other in (x.to_sparse(), x.to_mkldnn()):
            with self.assertRaises(NotImplementedError):
                ops.rms_norm(other, gamma)

    @unittest.skipUnless(LISTS, "torch 2.9 has no lists for kernels in C")
    def test_lists_of_tensors_are_updated_in_place_and_counted(self):
        grad, param, moment = ([torch.randn(n) for n in (3, 70, 1000)] for _ in range(3))
        square = [m * m for m in moment]
        single = [[t.clone() for t in of] for of in (param, moment, square)]
        written = [t._version for t in param]
        ops.multi_tensor_adamw(grad, None, param, None, moment, square, step=2, lr=0.01)
        for g, p, m, v in zip(grad, *single):
            ops.apply_fused_adamw(g, None, p, None, m, v, step=2, lr=0.01)
        for many, one in zip((param, moment, square), single):
            self.assertTrue(all(map(torch.equal, many, one)))
        self.assertTrue(all(t._version > before for t, before in zip(param, written)))
        self.refused("args.grad.count: expected 3, as args.param.count, got 2",
                     ops.multi_tensor_adamw, grad[:2], None, param, None, moment, square)

    @unittest.skipUnless(LISTS, "torch 2.9 has no lists of integers for kernels in C")
    def test_lists(self):
        q, k, v = (torch.randn(12, 2, 16) for _ in range(3))
        packed = ENUMS["attention_layout"]["tnd"]
        apart = [
            ops.fusion_attention(q[a:b][None], k[a:b][None], v[a:b][None], scale=0.25)[0]
            for a, b in ((0, 5), (5, 12))
        ]
        got = ops.fusion_attention(q,
                                   k,
                                   v,
                                   layout=packed,
                                   head_num=2,
                                   scale=0.25,
                                   actual_seq_qlen=[5, 12],
                                   actual_seq_kvlen=[5, 12])
        torch.testing.assert_close(got, torch.cat(apart))
        self.refused("actual_seq_qlen",
                     ops.fusion_attention,
                     q,
                     k,
                     v,
                     layout=packed,
                     head_num=2,
                     actual_seq_qlen=[5, 99],
                     actual_seq_kvlen=[5, 12])

    def test_fake_and_compiled(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            y, rstd = ops.rms_norm.full(torch.empty(4, 64), torch.empty(64))
            self.assertEqual((y.shape, rstd.shape, y.device.type), ((4, 64), (4, 1), "cpu"))
        x, gamma = torch.randn(4, 64), torch.randn(64)
        check = torch.library.opcheck(ops.rms_norm.full, (x, gamma),
                                      test_utils=("test_schema", "test_faketensor"))
        self.assertEqual(set(check.values()), {"SUCCESS"})
        y = torch.empty(4, 64)
        check = torch.library.opcheck(ops.rms_norm.out, (x, gamma, y),
                                      test_utils=("test_schema", "test_faketensor"))
        self.assertEqual(set(check.values()), {"SUCCESS"})

        def composed(x, gamma):
            y, total = ops.rms_norm(x * 2, gamma), torch.zeros(64, 64)
            ops.matmul_add_fp32(x, y, total)
            return y, total

        compiled = torch.compile(composed, fullgraph=True, backend="aot_eager")
        for got, want in zip(compiled(x, gamma), composed(x, gamma)):
            self.assertTrue(torch.equal(got, want))
        mapped = torch.vmap(lambda row: ops.rms_norm(row, gamma))(x)
        self.assertTrue(torch.equal(mapped, ops.rms_norm(x, gamma)))

    def test_threads(self):
        a, b = torch.randn(700, 1000), torch.randn(1000, 900)
        before, results = torch.get_num_threads(), []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append((ops.matmul(a, b), ops.add(a, a), ops.global_norm(a)))
        torch.set_num_threads(before)
        for other in results[1:]:
            for have, want in zip(other, results[0]):
                self.assertTrue(torch.equal(have, want))
        wrong = []

        def work():
            for _ in range(50):
                if not torch.equal(ops.add(a, a), results[0][1]):
                    wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])

    def test_the_context_can_be_configured(self):
        context = ctypes.c_void_p()
        self.assertEqual(ADAPTERS.velo_torch_context(ctypes.byref(context)), 0)
        x, gamma = torch.randn(4, 64), torch.randn(64)
        fast = ops.rms_norm(x, gamma)
        for key in (b"reference", b""):
            self.assertEqual(VELO.velo_config_set(context, b"kernel.rms_norm", key), 0)
            torch.testing.assert_close(ops.rms_norm(x, gamma), fast)

    def test_calls_leave_no_memory_behind(self):
        x, gamma = torch.randn(64, 64), torch.randn(64)
        cos = torch.ones(1, 64, 1, 16)
        heads = x.view(1, 64, 4, 16)

        def calls(times):
            for i in range(times):
                ops.rms_norm.full(x.t(), gamma)
                ops.rotary_position_embedding_backward.full(heads, cos, cos, heads)
                if i % 3 == 0:
                    self.refused("gamma", ops.rms_norm, x, gamma[:3])
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = calls(2000)
        self.assertLess(calls(10000) - before, 8 << 10)  # 16 KiB a call would be 160 MiB

    def test_a_second_velo_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            other = shutil.copy(os.environ["VELO_ADAPTERS"],
                                os.path.join(folder, "libvelo_adapters_other.so"))
            out, _ = alone(
                "print(register(), register()); print(register(ctypes.CDLL(sys.argv[1])));"
                "print(torch.ops.velo.rms_norm(x, gamma).shape)", other)
        first, second, third = out.splitlines()
        self.assertEqual(first, "(0, '') (0, '')")
        self.assertRegex(second,
                         rf"^\({STATE}, .velo_torch_register: torch: expected it to take velo::")
        self.assertIn("another copy of velo", second)
        if LISTS:
            first_file = os.path.basename(os.path.realpath(
                os.environ["VELO_ADAPTERS"])).split(".so")[0]
            self.assertIn(first_file, second.split("Original")[-1])
        self.assertEqual(third, "torch.Size([4, 64])")

    def test_before_torch_and_after(self):
        program = OPEN.replace(", torch\n", "\n", 1).split("x, gamma")[0]
        done = subprocess.run(
            [sys.executable, "-c", program + "print(register()); import torch; print(register())"],
            capture_output=True,
            text=True,
            check=True)
        none = ("velo_torch_register: torch: expected torch 2.9 or later in the process (import it "
                "first), got none")
        self.assertEqual(done.stdout.splitlines(), [f"(13, '{none}')", f"(0, '{none}')"])

    def test_fork_unload_and_exit(self):
        out, err = alone("""
register(); torch.ops.velo.rms_norm(x, gamma)
child = os.fork()
if child == 0:
    try:
        torch.ops.velo.rms_norm(x, gamma)
    except RuntimeError as error:
        print(error, flush=True)
        os._exit(3)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
import _ctypes
for _ in range(3):
    _ctypes.dlclose(adapters._handle)
print(torch.ops.velo.rms_norm(x, gamma).shape)
""")
        message, code, shape = out.splitlines()
        self.assertRegex(message, "velo::rms_norm: .*fork")
        self.assertEqual((code, shape, err), ("3", "torch.Size([4, 64])", ""))

    @unittest.skipUnless((3, 10) <= sys.version_info < (3, 13),
                         "the module for sub-interpreters has this name there")
    def test_a_sub_interpreter_finds_the_operators_registered(self):
        out, _ = alone("""
import _xxsubinterpreters as inner
register()
one = inner.create()
inner.run_string(one, "import ctypes, os; adapters = ctypes.CDLL(os.environ['VELO_ADAPTERS']); "
                      "print(adapters.velo_torch_register(), flush=True)")
inner.destroy(one)
print(torch.ops.velo.rms_norm(x, gamma).shape)
""")
        self.assertEqual(out.splitlines(), ["0", "torch.Size([4, 64])"])


if __name__ == "__main__":
    message = ctypes.create_string_buffer(2048)
    status = ADAPTERS.velo_torch_register()
    ADAPTERS.velo_adapters_last_error(message, ctypes.c_uint64(2048), None)
    assert status == 0, message.value.decode()
    unittest.main()
