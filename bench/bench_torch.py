#!/usr/bin/env python3
"""Measures torch on velo's bench rows: eager with memory kept, and compiled.

Alone it measures a list of rows and prints one JSON line for each:
    bench_torch.py [--threads 1,2] [--filter REGEX] [--budget SECONDS]
With --serve it reads one request a line from standard input and answers each with one line;
bench_ops asks so for the rows it is about to measure, so that both figures come from the same
minute.
    {"name": "rms_norm", "dtype": "f32", "shape": "8192x4096", "threads": 1, "sets": 2, "budget":
        1.0}
    {"name": ..., "results": [{"peer": "torch eager", "calls": 31, "min": 0.012, "p25": 0.0124}]}
        or  {"error": "why"}

"Memory kept" means that malloc never gives blocks back to the operating system: as shipped, torch
pays a page fault for every 4 KiB of every fresh result, 3 to 6 times the cost of the operator
itself. The settings must precede the first malloc, hence the re-exec.
"""
import argparse
import json
import math
import os
import re
import resource
import sys
import time

KEPT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(1 << 28),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}

ROWS = [
    (name, dtype, shape)
    for dtype in ("f32", "bf16")
    for name, shape in (
        ("rms_norm", "8192x4096"),
        ("rms_norm", "256x4096"),
        ("rms_norm_backward", "8192x4096"),
        ("layer_norm", "8192x4096"),
        ("layer_norm", "256x4096"),
        ("layer_norm_backward", "8192x4096"),
        ("dropout_add_layer_norm", "8192x4096"),
        ("dropout_add_rms_norm", "8192x4096"),
        ("swiglu", "8192x4096"),
        ("swiglu_backward", "8192x4096"),
        ("geglu", "8192x4096"),
        ("geglu_backward", "8192x4096"),
        ("reglu", "8192x4096"),
        ("reglu_backward", "8192x4096"),
        ("gelu", "8192x4096"),
        ("gelu_backward", "8192x4096"),
        ("fast_gelu", "8192x4096"),
        ("fast_gelu_backward", "8192x4096"),
        ("silu", "8192x4096"),
        ("silu_backward", "8192x4096"),
        ("relu", "8192x4096"),
        ("relu_backward", "8192x4096"),
        ("rotary_position_embedding", "4x2048x32x128"),
        ("rotary_position_embedding_backward", "4x2048x32x128"),
        ("matmul", "4096x4096x4096"),
        ("matmul", "16x2048x2048"),
        ("grouped_matmul", "2048x2048x2048 8"),
        ("weight_quant_matmul", "1x4096x4096 int8 nt"),
        ("weight_quant_matmul", "1x4096x4096 int4 nt"),
        ("grouped_matmul", "1024x1408x2048 64"),
        ("fusion_attention", "1x16x1024x128 causal"),
        ("fusion_attention", "1x4x4096x128 full"),
        ("fusion_attention", "1x4x4096x128 causal"),
        ("fusion_attention_backward", "1x16x1024x128 causal"),
        ("fusion_attention_backward", "1x4x4096x128 full"),
        ("fusion_attention_backward", "1x4x4096x128 causal"),
        ("embedding", "32768x4096 8192"),
        ("embedding_backward", "32768x4096 8192"),
        ("cross_entropy", "8192x4096"),
        ("softmax", "8192x4096"),
        ("softmax_backward", "8192x4096"),
        ("apply_fused_adamw", "33554432"),
        ("global_norm", "33554432"),
        ("global_norm_clip_step", "33554432"),
        ("add", "8192x4096"),
        ("cast", "8192x4096"),
        ("dropout", "8192x4096"),
        ("dropout_backward", "8192x4096"),
    )
]


def parse_shape(shape):
    """'1x4x4096x128 causal' -> ([1, 4, 4096, 128], ['causal'])"""
    head, *rest = shape.split()
    return [int(n) for n in head.split("x")], rest


def uneven_end(group, groups, total):
    """The end of the first groups of a grouped product: the later ones are longer, up to twice."""
    return total * group * (group + groups) // (2 * groups * groups)


class Operators:
    """One method an operator: takes (torch dtype, dimensions, words), returns (make, compilable):
    make(function wrapper) gives one callable working on buffers of its own."""

    def __init__(self, torch):
        self.torch = torch
        self.F = torch.nn.functional

    def tensor(self, dtype, *shape):
        return self.torch.randn(*shape).to(dtype)

    def forward(self, function, make_inputs):
        def make(wrap):
            wrapped = wrap(function)

            def one_set():
                inputs = make_inputs()

                def call():
                    with self.torch.no_grad():
                        return wrapped(*inputs)

                return call

            return one_set

        return make

    def backward(self, function, make_inputs, differentiable):
        """Times the gradient alone: the graph is built once and kept."""

        def make(wrap):
            wrapped = wrap(function)

            def one_set():
                inputs = make_inputs()
                wanted = [inputs[i].requires_grad_() for i in differentiable]
                result = wrapped(*inputs)
                upstream = self.torch.randn_like(result)
                return lambda: self.torch.autograd.grad(result, wanted, upstream, retain_graph=True)

            return one_set

        return make

    def rms_norm(self, dtype, d, words):
        def inputs():
            return [self.tensor(dtype, *d), self.tensor(dtype, d[-1])]

        return self.forward(lambda x, w: self.F.rms_norm(x, (d[-1],), w, 1e-6), inputs), True

    def rms_norm_backward(self, dtype, d, words):
        def inputs():
            return [self.tensor(dtype, *d), self.tensor(dtype, d[-1])]

        function = lambda x, w: self.F.rms_norm(x, (d[-1],), w, 1e-6)
        return self.backward(function, inputs, (0, 1)), True

    def layer_norm(self, dtype, d, words):
        def inputs():
            return [self.tensor(dtype, *d), self.tensor(dtype, d[-1]), self.tensor(dtype, d[-1])]

        return self.forward(lambda x, w, b: self.F.layer_norm(x, (d[-1],), w, b), inputs), True

    def layer_norm_backward(self, dtype, d, words):
        def inputs():
            return [self.tensor(dtype, *d), self.tensor(dtype, d[-1]), self.tensor(dtype, d[-1])]

        function = lambda x, w, b: self.F.layer_norm(x, (d[-1],), w, b)
        return self.backward(function, inputs, (0, 1, 2)), True

    def added(self, dtype, d, norm):
        """A norm of a sum, both of them results."""
        def inputs():
            return [self.tensor(dtype, *d), self.tensor(dtype, *d), self.tensor(dtype, d[-1])]

        return self.forward(norm, inputs), True

    def dropout_add_layer_norm(self, dtype, d, words):
        def norm(x, r, w):
            z = self.F.dropout(x, 0.1) + r
            return z, self.F.layer_norm(z, (d[-1],), w)

        return self.added(dtype, d, norm)

    def dropout_add_rms_norm(self, dtype, d, words):
        def norm(x, r, w):
            z = x + r
            return z, self.F.rms_norm(z, (d[-1],), w, 1e-6)

        return self.added(dtype, d, norm)

    def gated(self, function, dtype, d, differentiable=None):
        def gate(x):
            a, b = x.chunk(2, -1)
            return function(a) * b

        return self.applied(gate, dtype, (d[0], 2 * d[1]), differentiable)

    def applied(self, function, dtype, d, differentiable=None):
        inputs = lambda: [self.tensor(dtype, *d)]
        if differentiable is None:
            return self.forward(function, inputs), True
        return self.backward(function, inputs, differentiable), True

    def weight_quant_matmul(self, dtype, d, words):
        """torch has its weights [n, k]: int8 as they are, int4 in a layout of its own, with a scale
        and a zero for each 128 along k."""
        torch, (m, n, k) = self.torch, d
        if "int8" in words:
            inputs = lambda: [
                self.tensor(dtype, m, k),
                torch.randint(-128, 128, (n, k), dtype=torch.int8),
                self.tensor(dtype, n)
            ]
            return self.forward(torch._weight_int8pack_mm, inputs), True

        def inputs():
            weight = torch.randint(0, 16, (n, k), dtype=torch.int32)
            return [
                self.tensor(dtype, m, k),
                torch._convert_weight_to_int4pack_for_cpu(weight, 1), 128,
                self.tensor(dtype, k // 128, n, 2)
            ]

        return self.forward(torch._weight_int4pack_mm_for_cpu, inputs), False

    def softmax(self, dtype, d, words):
        return self.applied(lambda x: self.F.softmax(x, -1), dtype, d)

    def softmax_backward(self, dtype, d, words):
        return self.applied(lambda x: self.F.softmax(x, -1), dtype, d, (0,))

    def quick_gelu(self, x):
        return x * self.torch.sigmoid(1.702 * x)

    def swiglu(self, dtype, d, words):
        return self.gated(self.F.silu, dtype, d)

    def swiglu_backward(self, dtype, d, words):
        return self.gated(self.F.silu, dtype, d, (0,))

    def geglu(self, dtype, d, words):
        return self.gated(self.F.gelu, dtype, d)

    def geglu_backward(self, dtype, d, words):
        return self.gated(self.F.gelu, dtype, d, (0,))

    def reglu(self, dtype, d, words):
        return self.gated(self.F.relu, dtype, d)

    def reglu_backward(self, dtype, d, words):
        return self.gated(self.F.relu, dtype, d, (0,))

    def gelu(self, dtype, d, words):
        return self.applied(self.F.gelu, dtype, d)

    def gelu_backward(self, dtype, d, words):
        return self.applied(self.F.gelu, dtype, d, (0,))

    def fast_gelu(self, dtype, d, words):
        return self.applied(self.quick_gelu, dtype, d)

    def fast_gelu_backward(self, dtype, d, words):
        return self.applied(self.quick_gelu, dtype, d, (0,))

    def silu(self, dtype, d, words):
        return self.applied(self.F.silu, dtype, d)

    def silu_backward(self, dtype, d, words):
        return self.applied(self.F.silu, dtype, d, (0,))

    def relu(self, dtype, d, words):
        return self.applied(self.F.relu, dtype, d)

    def relu_backward(self, dtype, d, words):
        return self.applied(self.F.relu, dtype, d, (0,))

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + self.torch.cat((-b, a), -1) * sin

    def rope_inputs(self, dtype, d):
        angles = self.torch.arange(d[1])[:, None] / 1e4 ** (self.torch.arange(d[3]) / d[3])
        shape = (1, d[1], 1, d[3])
        return [
            self.tensor(dtype, *d),
            angles.cos().view(shape).to(dtype),
            angles.sin().view(shape).to(dtype)
        ]

    def rotary_position_embedding(self, dtype, d, words):
        return self.forward(self.rotate, lambda: self.rope_inputs(dtype, d)), True

    def rotary_position_embedding_backward(self, dtype, d, words):
        return self.backward(self.rotate, lambda: self.rope_inputs(dtype, d), (0,)), True

    def matmul(self, dtype, d, words):
        m, n, k = d
        a_shape, b_shape = (k, m) if "tn" in words else (m, k), (n, k) if "nt" in words else (k, n)

        def function(a, b, c):
            return self.torch.mm(a.t() if "tn" in words else a,
                                 b.t() if "nt" in words else b,
                                 out=c)

        def inputs():
            return [
                self.tensor(dtype, *a_shape),
                self.tensor(dtype, *b_shape),
                self.tensor(dtype, m, n)
            ]

        return self.forward(function, inputs), False

    def grouped_matmul(self, dtype, d, words):
        m, n, k = d
        groups = int(words[0])
        ends = self.torch.tensor([uneven_end(i + 1, groups, m) for i in range(groups)],
                                 dtype=self.torch.int32)
        inputs = lambda: [self.tensor(dtype, m, k), self.tensor(dtype, groups, k, n)]
        return self.forward(lambda x, w: self.F.grouped_mm(x, w, offs=ends), inputs), False

    def matmul_add_fp32(self, dtype, d, words):
        m, n, k = d

        def function(a, b, c):
            if dtype == self.torch.float32:
                return c.addmm_(a.t(), b)
            return c.add_(self.torch.mm(a.t(), b))

        def inputs():
            return [
                self.tensor(dtype, k, m),
                self.tensor(dtype, k, n),
                self.tensor(self.torch.float32, m, n)
            ]

        return self.forward(function, inputs), False

    def attend(self, words):
        causal = "causal" in words
        return lambda q, k, v: self.F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def fusion_attention(self, dtype, d, words):
        return self.forward(self.attend(words),
                            lambda: [self.tensor(dtype, *d) for _ in range(3)]), False

    def fusion_attention_backward(self, dtype, d, words):
        inputs = lambda: [self.tensor(dtype, *d) for _ in range(3)]
        return self.backward(self.attend(words), inputs, (0, 1, 2)), False

    def embedding(self, dtype, d, words):
        rows = int(words[0])
        inputs = lambda: [self.torch.randint(d[0], (rows,)), self.tensor(dtype, *d)]
        return self.forward(lambda ids, table: self.F.embedding(ids, table), inputs), False

    def embedding_backward(self, dtype, d, words):
        rows = int(words[0])

        def inputs():
            table = self.torch.zeros(*d)
            return [table, self.torch.randint(d[0], (rows,)), self.tensor(dtype, rows, d[1])]

        if dtype == self.torch.float32:
            return self.forward(lambda table, ids, dy: table.index_add_(0, ids, dy), inputs), False
        return self.forward(lambda table, ids, dy: table.index_add_(0, ids, dy.float()),
                            inputs), False

    def cross_entropy(self, dtype, d, words):
        """Forward and gradient of the logits together, as a training step runs them."""

        def make(wrap):
            loss = wrap(lambda logits, target: self.F.cross_entropy(logits, target))

            def one_set():
                logits = self.tensor(dtype, *d).requires_grad_()
                target = self.torch.randint(d[1], (d[0],))
                return lambda: self.torch.autograd.grad(loss(logits, target), logits)

            return one_set

        return make, True

    def optimizer(self, dtype, d, clip):
        torch = self.torch

        def make(wrap):
            def one_set():
                master = torch.randn(d[0]).requires_grad_()
                master.grad = torch.randn(d[0])
                step = torch.optim.AdamW([master], lr=1e-4, fused=True)
                if dtype == torch.float32:
                    narrow, gradient = None, None
                else:
                    narrow, gradient = master.detach().to(dtype), torch.randn(d[0]).to(dtype)

                def call():
                    with torch.no_grad():
                        if gradient is not None:
                            master.grad.copy_(gradient)
                        if clip:
                            torch.nn.utils.clip_grad_norm_([master], 1.0)
                        step.step()
                        if narrow is not None:
                            narrow.copy_(master)

                return call

            return one_set

        return make, False

    def apply_fused_adamw(self, dtype, d, words):
        return self.optimizer(dtype, d, clip=False)

    def global_norm_clip_step(self, dtype, d, words):
        return self.optimizer(dtype, d, clip=True)

    def global_norm(self, dtype, d, words):
        function = lambda g: self.torch.linalg.vector_norm(g, dtype=self.torch.float32)
        return self.forward(function, lambda: [self.tensor(dtype, d[0])]), False

    def add(self, dtype, d, words):
        function = lambda a, b, c: self.torch.add(a, b, out=c)
        return self.forward(function, lambda: [self.tensor(dtype, *d) for _ in range(3)]), False

    def cast(self, dtype, d, words):
        """Named by the source type: f32 to bf16 or back."""
        other = self.torch.bfloat16 if dtype == self.torch.float32 else self.torch.float32
        inputs = lambda: [self.tensor(dtype, *d), self.tensor(other, *d)]
        return self.forward(lambda a, b: b.copy_(a), inputs), False

    def dropout(self, dtype, d, words):
        function = lambda x: self.F.dropout(x, 0.1)
        return self.forward(function, lambda: [self.tensor(dtype, *d)]), True

    def dropout_backward(self, dtype, d, words):
        function = lambda x: self.F.dropout(x, 0.1)
        return self.backward(function, lambda: [self.tensor(dtype, *d)], [0]), True


class Bench:
    def __init__(self):
        import torch
        import torch._dynamo
        import torch._functorch.config
        import torch._inductor.config

        self.torch = torch
        self.operators = Operators(torch)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.row, self.prepared = None, []

    def set_threads(self, threads):
        """The caller stays on the first processor; workers, where wanted, may use all."""
        torch = self.torch
        torch.set_num_threads(threads)
        mask = self.cpus[:threads] if threads < len(self.cpus) else self.cpus
        for task in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(task), mask)
        torch._dynamo.reset()
        torch._inductor.config.cpp.threads = threads
        torch._functorch.config.donated_buffer = False

    def time(self, calls, budget, seconds):
        """Adds to `seconds`, until the budget is spent and seven calls are made."""
        least, end = len(seconds) + 7, time.perf_counter() + budget
        for call in (*calls, calls[0]):
            call()
        while len(seconds) < least or (time.perf_counter() < end and len(seconds) < 2000):
            call = calls[len(seconds) % len(calls)]
            switches, cpu, start = resource.getrusage(
                resource.RUSAGE_SELF).ru_nivcsw, time.thread_time(), time.perf_counter()
            result = call()
            wall, cpu = time.perf_counter() - start, time.thread_time() - cpu
            # As bench_ops does: the CPU time of a call that Linux interrupted, where one thread
            # does all the work.
            alone = self.row["threads"] == 1 and resource.getrusage(
                resource.RUSAGE_SELF).ru_nivcsw != switches
            seconds.append(cpu if alone else wall)
            del result

    def prepare(self, row):
        """Binds the row's calls, a list for each peer, with the seconds they took so far."""
        self.prepared = []
        torch = self.torch
        dtype = {
            "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16
        }[row["dtype"]]
        self.set_threads(row["threads"])
        make, compilable = getattr(self.operators, row["name"])(dtype, *parse_shape(row["shape"]))
        for peer in ("torch eager", "torch compiled") if compilable else ("torch eager",):
            wrap = torch.compile if peer == "torch compiled" else lambda function: function
            try:
                one_set = make(wrap)
                calls = [one_set() for _ in range(row.get("sets", 1))]
                calls[0]()
                self.prepared.append((peer, calls, []))
            except Exception as error:  # a compiler may be missing; the other mode still counts
                print(f"{peer}: {row['name']}: {error}", file=sys.stderr)

    def measure(self, row):
        """Asked for the same row again, goes on with its tensors and answers for all calls so
        far."""
        if not hasattr(self.operators, row["name"]):
            return {**row, "error": "torch has no such row"}
        if row != self.row:
            self.row = row
            self.prepare(row)
        results = []
        for peer, calls, seconds in self.prepared:
            self.time(calls, row.get("budget", 1.0), seconds)
            ordered = sorted(seconds)
            results.append({
                "peer": peer, "calls": len(ordered), "min": ordered[0], "p25": ordered[
                    (len(ordered) - 1) // 4]
            })
        return {**row, "results": results}


def keep_memory():
    if all(os.environ.get(key) == value for key, value in KEPT.items()):
        return
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEPT})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help="answer requests on standard input")
    parser.add_argument("--threads", default="1,2", help="thread counts, for instance 1,2")
    parser.add_argument("--filter",
                        default="",
                        help="only rows whose 'name dtype shape' matches this expression")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a row and mode")
    options = parser.parse_args()
    keep_memory()
    bench = Bench()
    if options.serve:
        print(json.dumps({"torch": bench.torch.__version__}), flush=True)
        for line in sys.stdin:
            print(json.dumps(bench.measure(json.loads(line))), flush=True)
        return
    for threads in (int(n) for n in options.threads.split(",")):
        for name, dtype, shape in ROWS:
            if re.search(options.filter, f"{name} {dtype} {shape}"):
                row = {"name": name, "dtype": dtype, "shape": shape, "threads": threads}
                row.update(sets=2 if math.prod(parse_shape(shape)[0]) > 1 << 24 else 1,
                           budget=options.budget)
                print(json.dumps(bench.measure(row)), flush=True)


if __name__ == "__main__":
    main()
