"""The loss over classes that are cut between two processes, with its gradient: velo's
vocab_parallel_cross_entropy against Megatron-Core's vocab_parallel_cross_entropy over gloo, in
float32. Without label smoothing, which Megatron-Core computes over a rank's own classes."""
import os
import sys
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [
    os.path.join(ROOT, part)
    for part in ("tests/hosts", "tests/hosts/ranks", "tests/parity", "capi/python")
]

from frameworks import torch  # noqa: E402
from two_processes import RANKS, make_group, on_two_ranks  # noqa: E402

from velo.torch.binding import call, library  # noqa: E402

warnings.simplefilter("ignore")  # that Megatron-Core goes without Apex
from megatron.core import parallel_state  # noqa: E402
from megatron.core.tensor_parallel import vocab_parallel_cross_entropy  # noqa: E402

ROWS, SEQUENCES, CLASSES = 7, 3, 1000


def close(name, got, truth):
    far = float((got - truth).norm() / truth.norm())
    assert far < 1e-5, f"{name}: {far:.1e} from Megatron-Core's"


def run_rank(folder, rank):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank,
                                         world_size=RANKS)
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=RANKS)
    group = make_group(library().c, library().context()[0], folder, rank)
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


if __name__ == "__main__":
    if len(sys.argv) == 1:
        on_two_ranks(__file__)
    else:
        run_rank(sys.argv[1], int(sys.argv[2]))
