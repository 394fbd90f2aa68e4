"""The loss over classes that are cut between two processes, with its gradient: velo's
vocab_parallel_cross_entropy against Megatron-Core's vocab_parallel_cross_entropy over gloo, in
float32. Without label smoothing, which Megatron-Core computes over a rank's own classes."""
import ctypes
import os
import subprocess
import sys
import tempfile
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "parity"), os.path.join(ROOT, "capi", "python")]

from frameworks import torch  # noqa: E402

import velo.ctypes as abi  # noqa: E402
from velo.torch.binding import call, library  # noqa: E402

warnings.simplefilter("ignore")  # that Megatron-Core goes without Apex
from megatron.core import parallel_state  # noqa: E402
from megatron.core.tensor_parallel import vocab_parallel_cross_entropy  # noqa: E402

RANKS, ROWS, SEQUENCES, CLASSES = 2, 7, 3, 1000


def make_group(rank, name):
    desc = abi.velo_group_desc(transport=abi.VELO_TRANSPORT_SHM, name=name.encode(), rank=rank,
                               size=RANKS, timeout_ns=60 * 10**9)
    group = abi.velo_group()
    made = library().c.velo_group_create(library().context()[0], ctypes.byref(desc),
                                         ctypes.byref(group))
    assert made == 0, f"no group: status {made}"
    return group


def close(name, got, truth):
    far = float((got - truth).norm() / truth.norm())
    assert far < 1e-5, f"{name}: {far:.1e} from Megatron-Core's"


def run_rank(folder, rank):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank,
                                         world_size=RANKS)
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=RANKS)
    group = make_group(rank, "vocab-loss-" + os.path.basename(folder))
    random = torch.Generator().manual_seed(5)
    logits = 6 * torch.randn(ROWS, SEQUENCES, CLASSES, generator=random)
    targets = torch.randint(CLASSES, (ROWS, SEQUENCES), generator=random)
    dloss = torch.rand(ROWS, SEQUENCES, generator=random)
    mine = logits.chunk(RANKS, -1)[rank].contiguous()

    theirs = mine.clone().requires_grad_()
    wanted = vocab_parallel_cross_entropy(theirs.clone(), targets)  # which overwrites its logits
    wanted.backward(dloss)

    rows = ROWS * SEQUENCES
    loss, lse, dlogits = torch.empty(rows), torch.empty(rows), torch.empty(rows, CLASSES // RANKS)
    common = {
        "logits": mine.view(rows, -1), "targets": targets.view(rows), "group": group.value,
        "vocab_begin": rank * CLASSES // RANKS, "vocab_size": CLASSES
    }
    call("vocab_parallel_cross_entropy", loss=loss, lse=lse, **common)
    call("vocab_parallel_cross_entropy_backward", dloss=dloss.view(rows), lse=lse, dlogits=dlogits,
         **common)
    close("loss", loss, wanted.detach().view(rows))
    close("gradient", dlogits, theirs.grad.view(rows, -1))
    library().c.velo_group_destroy(group)
    torch.distributed.destroy_process_group()
    print(f"rank {rank}: loss and gradient as Megatron-Core has them")


def main():
    if len(sys.argv) > 1:
        return run_rank(sys.argv[1], int(sys.argv[2]))
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, folder, str(rank)])
                 for rank in range(RANKS)]
        codes = [each.wait(timeout=600) for each in ranks]
    assert codes == [0] * RANKS, f"the ranks ended with {codes}"


if __name__ == "__main__":
    main()
