#!/usr/bin/env python3
"""Records what one training step of a model allocates and frees in torch, as RMM's log, compressed.

    record_step.py [MODEL ..] [--into bench/traces]

The models come from PyPI: `treelstm` (pytorch-tree-lstm: twelve trees of 10 to 60 nodes), `decoder`
(x-transformers: three batches of different lengths), `conformer` (conformer: three lengths of
speech), `unet` (unet), `efficientnet` (efficientnet_pytorch). A step is forward, loss, backward and
Adam; the one before it made Adam's states. torch's profiler tells each allocation and free of the
step; parameters and states are allocated at the beginning of the trace, as they are before the
step. Recorded with torch 1.13 on one thread:

    pip install --no-deps pytorch-tree-lstm==0.1.3 x-transformers==1.16.0 conformer==0.3.2
        unet==0.8.1 efficientnet_pytorch==0.7.1 einops
"""
import argparse
import lzma
import pathlib
import random

import torch
from torch.nn.functional import cross_entropy


def treelstm(draw):
    from treelstm import TreeLSTM, batch_tree_input, calculate_evaluation_orders

    model, head = TreeLSTM(150, 300), torch.nn.Linear(300, 5)

    def tree(nodes):
        edges = sorted((draw.randrange(max(0, i - 6), i), i) for i in range(1, nodes))
        nodes_at, edges_at = calculate_evaluation_orders(edges, nodes)
        return {"features": torch.randn(nodes, 150), "node_order": torch.from_numpy(nodes_at),
                "edge_order": torch.from_numpy(edges_at), "adjacency_list": torch.tensor(edges)}

    def loss():
        batch = batch_tree_input([tree(draw.randint(10, 60)) for _ in range(12)])
        hidden, _ = model(batch["features"], batch["node_order"], batch["adjacency_list"],
                          batch["edge_order"])
        return cross_entropy(head(hidden), torch.randint(0, 5, (hidden.shape[0],)))

    return torch.nn.ModuleList([model, head]), loss


def decoder(draw):
    from x_transformers import Decoder, TransformerWrapper

    model = TransformerWrapper(num_tokens=2000,
                               max_seq_len=256,
                               attn_layers=Decoder(dim=192, depth=4, heads=4))

    def loss():
        tokens = [torch.randint(0, 2000, (2, draw.randint(60, 250))) for _ in range(3)]
        return sum(cross_entropy(model(t[:, :-1]).transpose(1, 2), t[:, 1:]) for t in tokens)

    return model, loss


def conformer(draw):
    from conformer import Conformer

    model = Conformer(dim=144,
                      depth=3,
                      dim_head=36,
                      heads=4,
                      ff_mult=4,
                      conv_expansion_factor=2,
                      conv_kernel_size=31)
    return model, lambda: sum(
        model(torch.randn(2, draw.randint(80, 300), 144)).square().mean() for _ in range(3))


def unet(_):
    from unet import UNet2D

    model = UNet2D(normalization="batch",
                   num_encoding_blocks=4,
                   out_channels_first_layer=16,
                   padding=1)
    return model, lambda: cross_entropy(model(torch.randn(2, 1, 128, 128)),
                                        torch.randint(0, 2, (2, 128, 128)))


def efficientnet(_):
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0")
    return model, lambda: cross_entropy(model(torch.randn(4, 3, 128, 128)),
                                        torch.randint(0, 1000, (4,)))


MODELS = {make.__name__: make for make in (treelstm, decoder, conformer, unet, efficientnet)}


def allocations(profile):
    """(time, address, bytes) of the step, bytes below 0 of a free, in the order of time."""
    found, events = [], list(profile.profiler.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        if type(event.extra_fields).__name__.endswith("Allocation"):
            found.append(
                (event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size))
        events.extend(event.children)
    return sorted(found, key=lambda one: one[0])


def record(name):
    """The rows of the trace."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, loss = MODELS[name](random.Random(7))
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    step()
    model.zero_grad(set_to_none=True)
    states = [
        value for state in optimizer.state.values() for value in state.values()
        if torch.is_tensor(value)
    ]
    stays = {
        t.storage().data_ptr(): t.storage().nbytes()
        for t in [*model.parameters(), *model.buffers(), *states]
    }
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True) as profile:
        step()
    rows, alive = [], {}
    for address, size in [
            *stays.items(), *((address, size) for _, address, size in allocations(profile))
    ]:
        if address in alive:
            rows.append(("free", *alive.pop(address)))
        if size > 0:
            alive[address] = (hex(len(rows) + 1), size)
            rows.append(("allocate", *alive[address]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--into",
                        type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent / "traces")
    options = parser.parse_args()
    for name in options.models:
        rows = record(name)
        lines = [
            "Thread,Time,Action,Pointer,Size,Stream",
            *(f"0,{i},{a},{p},{s},0" for i, (a, p, s) in enumerate(rows))
        ]
        with lzma.open(options.into / f"{name}.csv.xz", "wt", preset=9) as file:
            file.write("\n".join(lines) + "\n")
        print(f"{name}: {len(rows)} events")


if __name__ == "__main__":
    main()
