"""Schedules between velo and torch.distributed.pipelining: torch loads, proves and simulates velo's
rows of every kind, and velo's rows with sends and receives; velo reads what torch writes, in both
of torch's forms, and finds nothing wrong. Where both make a kind, rows are the same."""
import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    os.path.join(HERE, ".."),
    os.path.join(HERE, "..", "..", "..", "capi", "python")
]
from framework import need  # noqa: E402
import velo.ctypes as abi  # noqa: E402

torch = need("torch")
from torch.distributed.pipelining import schedules  # noqa: E402
from torch.distributed.pipelining.stage import _PipelineStageBase  # noqa: E402

velo = ctypes.CDLL(os.environ["VELO_LIBRARY"])
CSV = 0


# Kinds with actions that torch does not know.
NOT_TORCHS = {
    "dualpipe": "micro-batches from both ends", "seq1f1b": "parts of sequences",
    "ripipe": "activations made again"
}


def done(status):
    assert status == 0, status


def kind_names():
    """By number."""
    names, name = [], ctypes.c_char_p()
    while velo.velo_schedule_kind_name(len(names), ctypes.byref(name)) == 0:
        names.append(name.value.decode())
    return names


KINDS = kind_names()


class Schedule:
    def __init__(self, kind="custom", ranks=0, microbatches=0, chunks=0, handle=None):
        self.handle = handle or ctypes.c_void_p()
        if handle is None:
            desc = abi.velo_schedule_desc()
            desc.kind, desc.ranks, desc.microbatches, desc.chunks = KINDS.index(
                kind), ranks, microbatches, chunks
            done(velo.velo_schedule_create(ctypes.byref(desc), ctypes.byref(self.handle)))

    def __del__(self):
        velo.velo_schedule_destroy(self.handle)

    def read(self, text):
        done(
            velo.velo_schedule_read(self.handle, CSV, text.encode(),
                                    ctypes.c_uint64(len(text.encode()))))
        return self

    def rows(self):
        size = ctypes.c_uint64()
        done(
            velo.velo_schedule_write(self.handle, CSV, None, ctypes.c_uint64(0),
                                     ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        done(velo.velo_schedule_write(self.handle, CSV, text, size, None))
        return text.value.decode()

    def lowered(self):
        handle = ctypes.c_void_p()
        done(velo.velo_schedule_lower(self.handle, ctypes.byref(handle)))
        return Schedule(handle=handle)

    def violations(self):
        count = ctypes.c_int64(-1)
        done(velo.velo_schedule_check(self.handle, ctypes.byref(count)))
        return count.value


class Stage(_PipelineStageBase):
    """A stage with all that torch's schedules ask of one when nothing runs."""

    def __init__(self, ranks, stages):  # pylint: disable=super-init-not-called
        self.submod = None
        self.group = None
        self.num_stages = stages
        self.group_size = ranks
        self.group_rank = 0
        self.stage_index = 0
        self.stage_index_to_group_rank = None

    def _create_grad_recv_info(self, *_):
        return None

    def _prepare_forward_infra(self, *_):
        return None

    def _prepare_backward_infra(self, *_):
        return None


def stages(ranks, count):
    return [Stage(ranks, count) for _ in range(count // ranks)]


OF_STAGES = {"UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD"}


def apart(actions):
    """Torch simulates no fused pairs, but their members one after the other, and nothing of a stage
    as a whole."""
    return {
        rank: [
            part for a in row if a is not None for part in (a.sub_actions or (a,))
            if part.computation_type.value not in OF_STAGES
        ] for rank, row in actions.items()
    }


def simulate(actions, ranks_of, count):
    """Torch's simulator: raises where ranks wait for each other."""
    simulated = schedules._simulate_comms_compute(apart(actions), lambda stage: ranks_of[stage],
                                                  count)
    expected = sum(len(row) for row in apart(actions).values())
    assert sum(a is not None for row in simulated.values() for a in row) == expected


def torch_accepts(rows, ranks, count, microbatches):
    with open("rows.csv", "w", encoding="ascii") as file:
        file.write(rows)
    loaded = schedules._PipelineScheduleRuntime(stages(ranks, count), microbatches)
    loaded._load_csv("rows.csv",
                     format="compute_only")  # proves the order, and puts sends and receives in
    simulate(loaded.pipeline_order_with_comms, loaded.stage_index_to_group_rank, count)
    return loaded


def torch_accepts_lowered(schedule, loaded, count):
    """velo's sends and receives, with the waits for each send that torch's own lowering adds."""
    rows = schedule.lowered().rows().splitlines()
    actions = {
        rank: [schedules._Action.from_str(text) for text in row.split(",")]
        for rank, row in enumerate(rows)
    }
    simulate(actions, loaded.stage_index_to_group_rank, count)
    waiting = schedules._add_wait_send(actions)
    schedules._validate_send_waits(waiting)
    simulate(waiting, loaded.stage_index_to_group_rank, count)


def takes(kind, chunks):
    """Whether a kind has schedules of so many chunks."""
    try:
        Schedule(kind, 4, 8, chunks)
    except AssertionError:
        return False
    return True


def check_velo_to_torch():
    seen = 0
    for kind in KINDS[1:]:
        if kind in NOT_TORCHS:
            continue
        for ranks, microbatches in ((2, 4), (4, 8), (4, 12), (3, 9), (8, 16)):
            for chunks in [some for some in (2, 4) if takes(kind, some)] or [1]:
                made = Schedule(kind, ranks, microbatches, chunks)
                loaded = torch_accepts(made.rows(), ranks, ranks * chunks, microbatches)
                torch_accepts_lowered(made, loaded, ranks * chunks)
                seen += 1
    return seen


def dumped(schedule, form):
    schedule._dump_csv("torch.csv", format=form)
    with open("torch.csv", encoding="ascii", newline="") as file:
        return file.read()


def without_gaps(text):
    """Torch's rows have an empty field where a rank waits."""
    return "".join(
        ",".join(field for field in row.split(",") if field) + "\n" for row in text.splitlines())


def check_torch_to_velo():
    ours = {
        "ScheduleInterleaved1F1B": "interleaved", "ScheduleLoopedBFS": "looped-bfs",
        "ScheduleInterleavedZeroBubble": "zb1p", "ScheduleZBVZeroBubble": "zbv",
        "ScheduleDualPipeV": "dualpipev"
    }
    # velo's order differs from torch's in kinds where torch orders actions otherwise than the
    # papers.
    same = {"interleaved", "zb1p", "zbv", "dualpipev"}
    seen = 0
    for name, kind in ours.items():
        v_shaped = kind in ("zbv", "dualpipev")
        for ranks, microbatches in ((2, 4), (4, 8), (4, 12), (8, 16)):
            for chunks in (2,) if v_shaped else (2, 4):
                count = ranks * chunks
                theirs = getattr(schedules, name)(stages(ranks, count),
                                                  microbatches,
                                                  loss_fn=lambda *_: None)
                for form in ("compute_only", "compute_comms"):
                    read = Schedule().read(dumped(theirs, form))
                    assert read.violations() == 0, (name, ranks, microbatches, form)
                    seen += 1
                if kind in same:
                    rows = without_gaps(dumped(theirs, "compute_only"))
                    assert Schedule(kind, ranks, microbatches,
                                    chunks).rows() == rows, (name, ranks, microbatches)
    return seen


print(
    f"torch {torch.__version__}: {check_velo_to_torch()} of velo's schedules accepted and "
    f"simulated, "
    f"{check_torch_to_velo()} of torch's texts read and proven")
