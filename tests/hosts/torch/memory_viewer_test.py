"""A pool's snapshots in torch's own viewer: JSON and pickle hold the same, and each of its views
reads them."""
import ctypes
import io
import json
import os
import pickle
import pickletools
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from framework import need  # noqa: E402

need("torch")
from torch.cuda import _memory_viz as viewer  # noqa: E402

velo = ctypes.CDLL(os.environ["VELO_LIBRARY"])
JSON, PICKLE, TIMELINE = 0, 1, 2
ORDINARY = 0
# Opcodes of pickles that the viewer's page knows: numbers, texts and containers, no code.
READ_BY_THE_PAGE = {
    "PROTO", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "SETITEMS", "APPENDS", "BININT", "BININT1",
    "BININT2", "LONG1", "BINUNICODE", "BINPUT", "BINGET", "TUPLE2", "NEWTRUE", "NEWFALSE"
}


class Request(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("lifetime", ctypes.c_int32),
                ("bytes", ctypes.c_uint64), ("alignment", ctypes.c_uint64),
                ("stream", ctypes.c_void_p), ("purpose", ctypes.c_int32), ("zero", ctypes.c_int32)]


def done(status):
    assert status == 0, status


class Pool:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        done(velo.velo_pool_create(None, ctypes.byref(self.handle)))

    def take(self, size, purpose=0, lifetime=0):
        request = Request(ctypes.sizeof(Request), lifetime, size, 0, None, purpose, 0)
        memory = ctypes.c_void_p()
        status = velo.velo_pool_allocate(self.handle, ctypes.byref(request), ctypes.byref(memory))
        return memory if status == 0 else None

    def give(self, memory, size):
        done(velo.velo_pool_free(self.handle, memory, ctypes.c_uint64(size), None))

    def note(self, text, memory=None):
        done(velo.velo_pool_note(self.handle, memory, text.encode()))

    def record(self, events):
        done(velo.velo_pool_record(self.handle, ctypes.c_uint64(events)))

    def save(self, form, path):
        done(velo.velo_pool_save(self.handle, form, path.encode()))
        with open(path, "rb") as file:
            return file.read()


def step(pool):
    """A training step of four layers, some of it refused."""
    weights = [pool.take(3 << 20, 1, 1) for _ in range(4)]
    pool.record(100000)
    pool.note("forward")
    kept = [pool.take((1 << 20) + 1000 * i, 4) for i in range(4)]
    pool.note('the "odd" one \u00e4\n', kept[3])
    done(velo.velo_pool_set_limit(pool.handle, ctypes.c_uint64(16 << 20)))
    assert pool.take(1 << 30, 5) is None
    done(velo.velo_pool_set_limit(pool.handle, ctypes.c_uint64(0)))
    pool.note("backward")
    for i in reversed(range(1, 4)):
        gradient = pool.take(3 << 20, 2)
        pool.give(kept[i], (1 << 20) + 1000 * i)
        pool.give(gradient, 3 << 20)
    for _ in range(2000):  # more than a list's part
        pool.give(pool.take(5000, 5), 5000)
    return weights, kept[:1]


def flat(lines, script=None):
    """In the place of the flame graph's script, which the viewer would fetch: what goes into it."""
    total = 0
    for line in lines.splitlines():
        total += int(line.rsplit(" ", 1)[1])
    return total, lines


def check_views(snapshot, before, empty):
    reserved = sum(s["total_size"] for s in snapshot["segments"])
    assert reserved == snapshot["velo"]["stats"]["bytes_reserved"]
    summary = viewer.segsum(snapshot)  # itself asserts that sizes add up
    assert f"segments: {len(snapshot['segments'])}" in summary
    story = viewer.trace(snapshot)
    assert "raise OutOfMemoryError # 1.0GiB requested" in story
    assert "# annotate" in story and "backward" in story
    total, lines = viewer.segments(snapshot, format_flamegraph=flat)
    assert total == reserved
    assert "activation:0:forward" in lines
    assert viewer.memory(snapshot, format_flamegraph=flat)[0] == reserved
    captured, sys.stdout = io.StringIO(), sys.stdout
    try:
        captured, sys.stdout = sys.stdout, captured
        compared = viewer.compare(before["segments"], snapshot["segments"], format_flamegraph=flat)
    finally:
        sys.stdout = captured
    assert compared[0] > 0
    for page in (viewer.trace_plot(snapshot), viewer.trace_plot(snapshot, plot_segments=True),
                 viewer.segment_plot(snapshot)):
        assert "snapshot.pickle" in page
    filtered = viewer.filter_alloc_free_pairs(pickle.loads(pickle.dumps(snapshot)))
    left = [e["action"] for e in filtered["device_traces"][0]]
    # Blocks freed after their allocation are gone; the three recorded blocks that are alive stay.
    assert left.count("alloc") == 1 and "free_requested" not in left, left
    viewer.trace(empty)
    viewer.segsum(empty)


def main():
    pool = Pool()
    empty = pickle.loads(pool.save(PICKLE, "empty.pickle"))
    first = pool.take(1 << 20)
    before = json.loads(pool.save(JSON, "before.json"))
    pool.give(first, 1 << 20)
    step(pool)
    text, pickled = pool.save(JSON, "snapshot.json"), pool.save(PICKLE, "snapshot.pickle")
    known = {op.name for op, _, _ in pickletools.genops(pickled)}
    assert known <= READ_BY_THE_PAGE, known - READ_BY_THE_PAGE
    assert pickled[:2] == b"\x80\x02"
    from_json, from_pickle = json.loads(text), pickle.loads(pickled)
    for snapshot in (from_json, from_pickle):
        snapshot["device_traces"][0].pop()  # the snapshot's own entry, which has its time
        check_views(snapshot, before, empty)

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(v) for key, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value

    def timeless(snapshot):  # ticks become time by when the snapshot was taken
        for entry in snapshot["device_traces"][0]:
            assert abs(entry.pop("time_us") - now) < 600e6
        return plain(snapshot)

    import time
    now = time.time() * 1e6
    assert timeless(from_json) == timeless(from_pickle)
    # Keys and types that torch's own snapshots have.
    segment, block = from_pickle["segments"][0], from_pickle["segments"][0]["blocks"][0]
    assert {
        "address", "total_size", "stream", "segment_type", "segment_pool_id", "allocated_size",
        "active_size", "requested_size", "device", "is_expandable", "blocks"
    } <= set(segment)
    assert {"address", "size", "requested_size", "state", "frames"} <= set(block)
    assert isinstance(segment["segment_pool_id"], tuple)
    assert {"active_allocated",
            "inactive"} >= {b["state"] for s in from_pickle["segments"] for b in s["blocks"]}
    assert {"alloc", "free_requested", "free_completed", "segment_map", "oom", "annotate"} == {
        e["action"] for e in from_pickle["device_traces"][0]}
    import xml.dom.minidom
    drawn = xml.dom.minidom.parseString(pool.save(TIMELINE, "timeline.svg"))
    assert drawn.documentElement.tagName == "svg"
    assert any("refused" in t.firstChild.data for t in drawn.getElementsByTagName("title"))
    print("read by torch's viewer:", len(from_json["device_traces"][0]), "entries")


main()
