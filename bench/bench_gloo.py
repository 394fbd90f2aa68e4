#!/usr/bin/env python3
"""Gloo through torch, as a peer of bench_comm: one process for each rank, asked line by line.

    bench_gloo.py STORE RANK SIZE     STORE: a file that all ranks see and that does not exist yet

"ready" is the first answer. "row all_reduce f32 1024" (elements of the whole) is answered by "ok",
or "no" where Gloo has no such collective; "call 7" by the seconds of one call after a barrier, with
inputs written anew for round 7, or by -1 where what it gave is wrong.
"""
import sys
import time

import torch
import torch.distributed as dist

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Row:
    def __init__(self, name, dtype, whole, rank, size):
        self.name, self.dtype, self.rank, self.size = name, DTYPES[dtype], rank, size
        self.part = whole // size
        self.index = torch.arange(whole, dtype=torch.int32)
        self.given = torch.empty(self.part if name == "all_gather" else whole, dtype=self.dtype)
        self.got = torch.empty(self.part if name == "reduce_scatter" else whole, dtype=self.dtype)

    def value(self, rank, index, round):
        return (index + 3 * rank + round) & 15

    def write(self, round):
        self.given.copy_(self.value(self.rank, self.index[: self.given.numel()], round))
        self.got.fill_(-1)
        if self.name in ("all_reduce", "broadcast"):  # in place: torch has no other
            self.got.copy_(self.given)

    def call(self):
        if self.name == "barrier":
            dist.barrier()
        elif self.name == "all_reduce":
            dist.all_reduce(self.got)
        elif self.name == "reduce_scatter":
            dist.reduce_scatter_tensor(self.got, self.given)
        elif self.name == "all_gather":
            dist.all_gather_into_tensor(self.got, self.given)
        elif self.name == "all_to_all":
            dist.all_to_all_single(self.got, self.given)
        else:
            dist.broadcast(self.got, 0)

    def is_right(self, round):
        if self.name == "barrier":
            return True
        mine = self.index[self.rank * self.part : (self.rank + 1) * self.part]
        if self.name == "all_reduce":
            expected = sum(self.value(r, self.index, round) for r in range(self.size))
        elif self.name == "reduce_scatter":
            expected = sum(self.value(r, mine, round) for r in range(self.size))
        elif self.name == "all_gather":
            expected = torch.cat(
                [self.value(r, self.index[:self.part], round) for r in range(self.size)])
        elif self.name == "all_to_all":
            expected = torch.cat([self.value(r, mine, round) for r in range(self.size)])
        else:
            expected = self.value(0, self.index, round)
        return bool((self.got == expected.to(self.dtype)).all())

    def time(self, round):
        self.write(round)
        dist.barrier()
        begin = time.perf_counter()
        self.call()
        took = time.perf_counter() - begin
        return took if self.is_right(round) else -1


def main():
    store, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=size)
    print("ready", flush=True)
    row = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "call":
            print(row.time(int(words[1])), flush=True)
            continue
        try:
            row = Row(words[1], words[2], int(words[3]), rank, size)
            row.time(0)
            print("ok", flush=True)
        except (RuntimeError, ValueError, TypeError):
            print("no", flush=True)


if __name__ == "__main__":
    main()
