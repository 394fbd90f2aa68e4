"""Ways to leave while velo is at work: under torch and under jax, with contexts, worker threads and
queued work alive, the process ends with its own exit code, at once and in silence; after dlclose
everything goes on.

What queued work reads is kept from Python's cleaning up, as a host's own memory is. A daemon thread
may be inside velo when Python goes, called by ctypes; inside torch's dispatcher or jax it may not,
since these two abort then by themselves (torch.add in such a thread ends a process with `terminate
called without an active exception`).

VELO_LIBRARY and VELO_ADAPTERS name the libraries. Each case is a process of its own, made of a
start and an end from below.
"""
import os
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from framework import need  # noqa: E402

need("torch")
need("jax")

START = """
import _ctypes, ctypes, os, sys, threading, time
import velo.ctypes as v

def left():
    print(time.time(), flush=True)

def adder(lib, size):
    # A function that gives a stream an addition of so many numbers.
    numbers = (ctypes.c_float * size)()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(numbers))  # never freed
    shape = (ctypes.c_int64 * 1)(size)
    view = v.velo_tensor(data=ctypes.addressof(numbers), ndim=1, shape=shape,
                         device=v.velo_device(v.VELO_DEVICE_CPU, 0),
                         dtype=v.velo_dtype(v.VELO_DTYPE_FLOAT, 32, 1))
    at = ctypes.pointer(view)
    args = v.velo_add_args(a=at, b=at, y=at)
    return lambda stream: v.check(lib, lib.velo_add(stream, ctypes.byref(args)))

def make_context(lib):
    context = v.velo_context()
    desc = v.velo_context_desc(threads=3)
    v.check(lib, lib.velo_context_create(ctypes.byref(desc), ctypes.byref(context)))
    return context

def queue(path):
    # A context with workers, and a stream with about a second of work in it.
    lib, stream = v.load(path), v.velo_stream()
    context = make_context(lib)
    v.check(lib, lib.velo_stream_create(context, ctypes.byref(stream)))
    add = adder(lib, 1 << 22)
    for _ in range(500):
        add(stream)
    return lib, context, stream
"""
HOSTS = {
    "torch":
        START + """
import torch, velo.torch as velo
handle = velo.library().c._handle
x, gain = torch.randn(64, 256), torch.ones(256)

def compute():
    leaves = [t.clone().requires_grad_() for t in (x, gain)]
    return torch.autograd.grad(velo.rms_norm(*leaves).sum(), leaves)[1].numpy().tolist()

def call_for_ever():
    lib, stream = v.load(os.environ["VELO_LIBRARY"]), v.velo_stream()
    v.check(lib, lib.velo_context_stream(make_context(lib), ctypes.byref(stream)))
    add = adder(lib, 1 << 18)
    while True:
        add(stream)

kept = queue(os.environ["VELO_LIBRARY"])
""", "jax":
            START + """
import jax, numpy as np, velo.jax as velo
from velo import spec
handle = spec.library._handle
x = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float32)
gain = np.ones(256, np.float32)
step = jax.jit(jax.grad(lambda x, g: velo.rms_norm(x, g).sum(), (0, 1)))

def compute():
    return np.asarray(step(x, gain)[1]).tolist()

kept = queue(os.environ["VELO_ADAPTERS"])
big = jax.jit(lambda x: velo.swiglu(x))
pending = [big(np.ones((512, 8192), np.float32)) for _ in range(20)]
""",
}
GOES_ON = """
before = compute()
for _ in range(3):
    _ctypes.dlclose(handle)
    _ctypes.dlclose(kept[0]._handle)
assert any("libvelo" in line for line in open("/proc/self/maps"))
assert compute() == before
v.check(kept[0], kept[0].velo_stream_synchronize(kept[2]))
left()
"""
ENDS = {
    "the end of the script":
        "compute(); left()", "sys.exit":
            "compute(); left(); sys.exit(0)",
    "sys.exit in a thread":
        "compute(); t = threading.Thread(target=lambda: (compute(), left(), sys.exit(0))); "
        "t.start(); t.join()",
    "os._exit":
        "compute(); left(); os._exit(0)",
    "os._exit in a thread":
        "threading.Thread(target=lambda: (compute(), left(), os._exit(0))).start(); time.sleep(60)",
    "a daemon thread inside velo":
        "threading.Thread(target=call_for_ever, daemon=True).start(); time.sleep(0.3); left()",
    "dlclose, and go on":
        GOES_ON, "dlclose and nothing more":
            "compute(); _ctypes.dlclose(handle); _ctypes.dlclose(kept[0]._handle); left()",
}


class Leaving(unittest.TestCase):
    def leave(self, host):
        package = os.path.join(HERE, "..", "..", "capi", "python")
        environment = {**os.environ, "PYTHONPATH": package}
        for name, end in ENDS.items():
            if host == "jax" and "daemon" in name:
                continue
            with self.subTest(f"{host}, {name}"):
                command = [sys.executable, "-c", HOSTS[host] + end]
                done = subprocess.run(command,
                                      env=environment,
                                      capture_output=True,
                                      text=True,
                                      timeout=180)
                took = time.time() - float(done.stdout or "nan")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertLess(took, 10, "seconds from the last statement to the end")

    def test_torch(self):
        self.leave("torch")

    def test_jax(self):
        self.leave("jax")


if __name__ == "__main__":
    unittest.main()
