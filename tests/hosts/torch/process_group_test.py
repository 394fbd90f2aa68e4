"""velo's groups over a Gloo process group of torch: three processes that torch has connected,
driven through velo.ctypes. What velo makes of Gloo's collectives is held to the bits that threads
of one process get."""
import ctypes
import datetime
import os
import sys
import tempfile
import threading
import traceback
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "parity"), os.path.join(ROOT, "capi", "python")]

from frameworks import torch  # noqa: E402

import velo  # noqa: E402
import velo.ctypes as abi  # noqa: E402

dist = torch.distributed
RANKS = 3
SECONDS = 60
DTYPES = {
    torch.float32: (abi.VELO_DTYPE_FLOAT, 32), torch.bfloat16: (abi.VELO_DTYPE_BFLOAT, 16),
    torch.int64: (abi.VELO_DTYPE_INT, 64)
}


def view(address, count, dtype=torch.uint8):
    """Memory that velo hands over, as a tensor."""
    if count == 0:
        return torch.empty(0, dtype=dtype)
    size = count * torch.empty(0, dtype=dtype).element_size()
    return torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=dtype)


class Gloo:
    """The functions of a process group as velo's table; `functions` names those that velo gets."""

    def __init__(self, functions):
        self.released = threading.Event()
        self.table = abi.velo_host_collectives()
        for name in functions.split():
            kind = getattr(abi, f"velo_host_{name}_fn")
            setattr(self.table, name, kind(self.guarded(getattr(self, name))))
        self.table.release = abi.velo_host_release_fn(lambda user: self.released.set())

    @staticmethod
    def guarded(function):
        def call(user, about, *given):
            info = about.contents
            try:
                return function(datetime.timedelta(microseconds=max(1, info.timeout_ns // 1000)),
                                *given)
            except BaseException as failure:
                word = str(failure).encode()[:info.capacity - 1] + b"\0"
                place = ctypes.c_void_p.from_buffer(info, abi.velo_host_call.why.offset)
                ctypes.memmove(place, word, len(word))
                return -1
        return call

    @staticmethod
    def all_gather(limit, have, out, size):
        parts = list(view(out, RANKS * size).split(size))
        dist.all_gather(parts, view(have, size), async_op=True).wait(limit)
        return RANKS * size

    @staticmethod
    def all_to_all(limit, have, gives, out, takes):
        gives, takes = gives[:RANKS], takes[:RANKS]
        dist.all_to_all_single(view(out, sum(takes)),
                               view(have, sum(gives)),
                               takes,
                               gives,
                               async_op=True).wait(limit)
        return sum(takes)

    @staticmethod
    def broadcast(limit, root, data, size):
        dist.broadcast(view(data, size), root, async_op=True).wait(limit)
        return size

    @staticmethod
    def all_reduce(limit, op, dtype, have, out, count):
        known = {(code, bits): kind for kind, (code, bits) in DTYPES.items()}.get(
                     (dtype.contents.code, dtype.contents.bits))
        ops = {abi.VELO_REDUCE_SUM: dist.ReduceOp.SUM, abi.VELO_REDUCE_MAX: dist.ReduceOp.MAX}
        if known is None or op not in ops:
            return abi.VELO_HOST_DECLINED
        total = view(out, count, known)
        total.copy_(view(have, count, known))
        dist.all_reduce(total, ops[op], async_op=True).wait(limit)
        return count * total.element_size()

    @staticmethod
    def send(limit, to, data, size):
        dist.isend(view(data, size), to).wait(limit)
        return size

    @staticmethod
    def receive(limit, source, data, size):
        dist.irecv(view(data, size), source).wait(limit)
        return size


class Refused(Exception):
    pass


class Rank:
    """One rank, of whatever transport."""

    def __init__(self, library, rank, group=None, context=None):
        self.library, self.rank = library, rank
        self.context = context or self.new_context(library)
        self.stream, self.group = abi.velo_stream(), group or abi.velo_group()
        self.must(library.velo_context_stream(self.context, ctypes.byref(self.stream)))

    @staticmethod
    def new_context(library):
        context, desc = abi.velo_context(), abi.velo_context_desc(threads=1)
        assert library.velo_context_create(ctypes.byref(desc), ctypes.byref(context)) == 0
        return context

    def over(self, host, seconds=SECONDS):
        desc = abi.velo_group_desc(transport=abi.VELO_TRANSPORT_HOST,
                                   rank=self.rank,
                                   size=RANKS,
                                   timeout_ns=seconds * 10**9,
                                   buffer=64 << 10,
                                   host=ctypes.pointer(host.table))
        self.must(
            self.library.velo_group_create(self.context, ctypes.byref(desc),
                                           ctypes.byref(self.group)))
        return self

    def must(self, status):
        if status == 0:
            return
        why = abi.velo_error_info()
        self.library.velo_last_error(ctypes.byref(why))
        raise Refused(f"{status}: {why.got.decode()}: {why.cause.decode()}")

    def tensor(self, x):
        shape = (ctypes.c_int64 * 1)(x.numel())
        code, bits = DTYPES[x.dtype]
        made = abi.velo_tensor(data=x.data_ptr(),
                               ndim=1,
                               shape=shape,
                               dtype=abi.velo_dtype(code, bits, 1),
                               device=abi.velo_device(abi.VELO_DEVICE_CPU, 0))
        made.keeps = (x, shape)
        return made

    def call(self, name, *given):
        made = [ctypes.byref(self.tensor(x)) if isinstance(x, torch.Tensor) else x for x in given]
        self.must(getattr(self.library, f"velo_group_{name}")(self.stream, self.group, *made))

    def close(self):
        self.library.velo_context_destroy(self.context)


def program(rank, dtype, count, whole, messages):
    """Collectives of every kind; all that came out. whole: of small whole numbers, whose sums no
    order changes."""
    draw = torch.Generator().manual_seed(100 * rank.rank + count)

    def have(n):
        if whole or dtype == torch.int64:
            return torch.randint(-9, 9, (n,), generator=draw).to(dtype)
        return torch.randn(n, generator=draw).to(dtype)

    kept = []
    for op in (abi.VELO_REDUCE_SUM, abi.VELO_REDUCE_AVG, abi.VELO_REDUCE_MAX):
        how = abi.velo_reduction(op=op)
        x, out, part = have(count), have(count), have(count)
        rank.call("all_reduce", ctypes.byref(how), x, out)
        rank.call("reduce_scatter", ctypes.byref(how), have(RANKS * count), part)
        kept += [out, part]
    x, wide, back = have(count), have(RANKS * count), have(RANKS * count)
    rank.call("barrier")
    rank.call("broadcast", 1, x)
    rank.call("all_gather", have(count), wide)
    rank.call("all_to_all", wide.clone(), back)
    kept += [x, wide.clone(), back]
    rank.call("gather", 2, have(count), wide)
    rank.call("scatter", 2, wide, x)
    kept += [wide, x.clone()]
    if messages:
        following, before = (rank.rank + 1) % RANKS, (rank.rank - 1) % RANKS
        mine, theirs = have(count), have(count)
        both = (abi.velo_group_message * 2)()
        for place, (peer, data) in enumerate(((following, mine), (before, theirs))):
            both[place].x = ctypes.pointer(rank.tensor(data))
            both[place].rank, both[place].direction = peer, place
        rank.must(rank.library.velo_group_exchange(rank.stream, rank.group, both, 2))
        kept.append(theirs)
    return kept


def locally(library, *given):
    """The results of each rank where ranks are threads."""
    contexts = (abi.velo_context * RANKS)(*[Rank.new_context(library) for _ in range(RANKS)])
    groups = (abi.velo_group * RANKS)()
    assert library.velo_group_create_local(contexts, RANKS, None, groups) == 0
    kept = [None] * RANKS
    ranks = [Rank(library, r, groups[r], contexts[r]) for r in range(RANKS)]

    def run(rank):
        kept[rank.rank] = program(rank, *given)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for rank in ranks:
        rank.close()
    return kept


def compare(library, number):
    for functions in ("all_gather", "all_to_all", "broadcast", "send receive",
                      "all_gather all_to_all broadcast send receive", "all_gather all_reduce"):
        host = Gloo(functions)
        rank = Rank(library, number).over(host)
        whole, messages = "reduce" in functions, "send" in functions
        for dtype in DTYPES:
            for count in (1, 30011):
                given = (dtype, count, whole, messages)
                for place, (got, wanted) in enumerate(
                        zip(program(rank, *given),
                            locally(library, *given)[number])):
                    assert torch.equal(got, wanted), (functions, dtype, count, place)
        rank.close()
        assert host.released.wait(SECONDS), functions


def miss(library, number):
    """A rank that never comes: Gloo's word for it, on the ranks that wait."""
    host = Gloo("all_gather")
    rank = Rank(library, number).over(host, seconds=3)
    rank.call("barrier")
    dist.barrier()
    if number != 2:
        try:
            rank.call("barrier")
        except Refused as failure:
            assert f"rank {number} whose host failed: all_gather returned -1: " in str(
                failure), failure
        else:
            raise AssertionError("nobody was missed")
    rank.close()
    os._exit(0)  # Gloo is of no more use


def run(body, number, rendezvous, library):
    try:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo",
                                init_method=f"file://{rendezvous}",
                                rank=number,
                                world_size=RANKS,
                                timeout=datetime.timedelta(seconds=SECONDS))
        body(abi.load(library), number)
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


class ProcessGroup(unittest.TestCase):
    def on_ranks(self, body):
        with tempfile.TemporaryDirectory() as folder:
            processes = torch.multiprocessing.get_context("spawn")
            ranks = [
                processes.Process(target=run,
                                  args=(body, number, os.path.join(folder,
                                                                   "met"), velo.library_path()))
                for number in range(RANKS)
            ]
            for one in ranks:
                one.start()
            for one in ranks:
                one.join(300)
            self.assertEqual([one.exitcode for one in ranks], [0] * RANKS)

    def test_results_are_those_of_threads(self):
        print(f"torch {torch.__version__}")
        self.on_ranks(compare)

    def test_a_rank_that_does_not_come_is_missed_in_the_words_of_gloo(self):
        self.on_ranks(miss)


if __name__ == "__main__":
    unittest.main()
