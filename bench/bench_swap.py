#!/usr/bin/env python3
"""What the tiers of a swap give, in GB/s: files beside fio, io_uring beside threads, other memory
beside memcpy.

    bench_swap.py DIR [--size 536870912] [--block 1048576] [--depth 8] [--rounds 12] [--json]

An object goes out and comes back: whole, and 12345 bytes shorter, from memory that begins anywhere.
fio writes and reads velo's own file, in the same blocks, as many at a time, by io_uring around the
page cache too, and from memory on huge pages as velo's is: a request of 1 MiB is one piece there,
on ordinary pages 256, which a disk may split; that alone is worth half. Both take turns within a
round, who goes first changes from round to round, and a figure is the median of the rounds' ratios:
a disk that is shared is fast and slow by the minute. Checksums are measured apart: the share of the
copies' time that is theirs. Goals: goals.json, swap. Needs fio (Debian's); VELO_LIBRARY names the
library, else the build's is taken.
"""
import argparse
import ctypes
import json
import mmap
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "capi/python"))
os.environ.setdefault("VELO_LIBRARY", str(ROOT / "build/capi/libvelo.so.1"))
import velo.ctypes as v  # noqa: E402

HUGE, MADV_HUGEPAGE = 2 << 20, 14
libc = ctypes.CDLL(None)


class Memory:
    """Touched memory on huge pages, as a pool's is, `shift` bytes behind the beginning of one."""

    def __init__(self, size, shift=0):
        self.pages = mmap.mmap(-1, size + 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        begin = -(-ctypes.addressof(ctypes.c_char.from_buffer(self.pages)) // HUGE) * HUGE
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size + HUGE), MADV_HUGEPAGE)
        self.address, noise = begin + shift, os.urandom(1 << 20)
        for at in range(0, size, len(noise)):
            ctypes.memmove(self.address + at, noise, min(len(noise), size - at))


class Swap:
    """An object that goes out and comes back: what is asked for is timed, what has to come before
    is not."""

    def __init__(self, library, context, memory, size, **desc):
        self.library, self.memory, self.size, self.resident = library, memory, size, True
        self.stream, self.handle, self.object = v.velo_stream(), v.velo_swap(), ctypes.c_uint64()
        v.check(library, library.velo_context_stream(context, ctypes.byref(self.stream)))
        filled = v.velo_swap_desc(block=1 << 20, depth=8, checksums=0, direct=1)
        for field, value in desc.items():
            setattr(filled, field, value)
        v.check(library,
                library.velo_swap_create(context, ctypes.byref(filled), ctypes.byref(self.handle)))
        v.check(
            library,
            library.velo_swap_add(self.handle, memory.address, size, v.VELO_SWAP_WARM,
                                  ctypes.byref(self.object)))
        self.copy("write"), self.copy("read")  # lays the file out

    def copy(self, way):
        if self.resident != (way == "write"):
            self.copy("read" if way == "write" else "write")
        self.resident = way == "read"
        begin = time.perf_counter()
        if way == "write":
            v.check(self.library,
                    self.library.velo_swap_out(self.handle, self.object, self.stream, None))
        else:
            v.check(self.library,
                    self.library.velo_swap_in(self.handle, self.object, None, self.stream, None))
        v.check(self.library, self.library.velo_swap_wait(self.handle, self.object, self.stream))
        return self.size / 1e9 / (time.perf_counter() - begin)

    def stats(self):
        stats = v.velo_swap_stats()
        v.check(self.library, self.library.velo_swap_get_stats(self.handle, ctypes.byref(stats)))
        return stats

    def close(self):
        self.library.velo_swap_destroy(self.handle)


def file_in(folder):
    """The file without a name that this process has there."""
    for fd in os.listdir("/proc/self/fd"):
        link = f"/proc/{os.getpid()}/fd/{fd}"
        if os.path.exists(link) and os.readlink(link).startswith(os.path.realpath(folder) + "/"):
            return link
    sys.exit(f"{folder}: no file of a swap")


def fio(options, way):
    output = subprocess.run([
        "fio", "--name=velo", f"--filename={file_in(options.folder)}", f"--size={options.size}",
        f"--bs={options.block}", f"--iodepth={options.depth}", "--ioengine=io_uring", "--direct=1",
        f"--rw={way}", "--fallocate=none", "--output-format=json"
    ],
                          env={**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
                          capture_output=True,
                          text=True,
                          check=True).stdout
    job = json.loads(output[output.index("{"):])["jobs"][0][way]
    return job["io_bytes"] / 1e9 / (job["runtime"] / 1e3)


def ratios(rounds, ours, theirs):
    """Medians of both and of their ratio; who goes first changes."""
    taken = []
    for number in range(rounds):
        if number % 2:
            their, our = theirs(), ours()
        else:
            our, their = ours(), theirs()
        taken.append((our, their, our / their))
    return [statistics.median(column) for column in zip(*taken)]


def disk_rows(library, context, options):
    for shape, less, shift in (("whole", 0, 0), ("unaligned", 12345, 100)):
        size = options.size - less
        swap = Swap(library,
                    context,
                    Memory(size, shift),
                    size,
                    tier=v.VELO_SWAP_DISK,
                    directories=options.folder.encode(),
                    block=options.block,
                    depth=options.depth)
        for way in ("write", "read"):
            velo, peer, ratio = ratios(options.rounds, lambda: swap.copy(way),
                                       lambda: fio(options, way))
            yield {
                "tier": "disk", "shape": shape, "way": way, "velo": velo, "peer": "fio",
                "peer_rate": peer, "ratio": ratio, "how": swap.stats().how.decode()
            }
        swap.close()


def engine_rows(library, context, options):
    """io_uring beside threads, which a system without it gets."""
    for checksums in (0, 1):
        memory = Memory(options.size)
        one, other = (Swap(library,
                           context,
                           memory,
                           options.size,
                           tier=v.VELO_SWAP_DISK,
                           directories=options.folder.encode(),
                           block=options.block,
                           depth=options.depth,
                           checksums=checksums,
                           engine=engine)
                      for engine in (v.VELO_SWAP_ENGINE_AUTO, v.VELO_SWAP_ENGINE_THREADS))
        for way in ("write", "read"):
            velo, peer, ratio = ratios(options.rounds, lambda: one.copy(way),
                                       lambda: other.copy(way))
            yield {
                "tier": "disk", "shape": "engine, checksums" if checksums else "engine", "way": way,
                "velo": velo, "peer": "threads", "peer_rate": peer, "ratio": ratio,
                "how": one.stats().how.decode()
            }
        one.close(), other.close()


def checksum_row(library, context, options):
    swap = Swap(library,
                context,
                Memory(options.size),
                options.size,
                tier=v.VELO_SWAP_DISK,
                directories=options.folder.encode(),
                block=options.block,
                depth=options.depth,
                checksums=1)
    rates = {way: [] for way in ("write", "read")}
    for _ in range(options.rounds):
        for way in rates:
            rates[way].append(swap.copy(way))
    stats = swap.stats()
    row = {
        "tier": "disk", "shape": "checksums",
        "checksum_gb_s": stats.bytes_out / 1e9 / stats.seconds_checksum_out
    }
    for way, of_copies, of_sums in (("write", stats.seconds_out, stats.seconds_checksum_out),
                                    ("read", stats.seconds_in, stats.seconds_checksum_in)):
        row[way] = statistics.median(rates[way])
        row[f"share_{way}"] = of_sums / of_copies
    swap.close()
    return row


def host_rows(library, context, options):
    here, there = Memory(options.size), Memory(options.size)
    swap = Swap(library, context, here, options.size, tier=v.VELO_SWAP_HOST)

    def memcpy(to, source):
        begin = time.perf_counter()
        ctypes.memmove(to.address, source.address, options.size)
        return options.size / 1e9 / (time.perf_counter() - begin)

    for way in ("write", "read"):
        velo, peer, ratio = ratios(options.rounds, lambda: swap.copy(way),
                                   lambda: memcpy(there, here))
        yield {
            "tier": "host", "shape": "whole", "way": way, "velo": velo, "peer": "memcpy",
            "peer_rate": peer, "ratio": ratio
        }
    swap.close()


def judge(rows):
    for goal in json.loads(
        (pathlib.Path(__file__).resolve().parent / "goals.json").read_text())["swap"]:
        found = [
            row for row in rows if all(
                re.fullmatch(want, str(row.get(key, ""))) for key, want in goal["row"].items())
        ]
        for row in found:
            reached = row["ratio"] >= goal["bound"]
            print(
                f"  {'reached' if reached else 'MISSED '}  {goal['id']}: {row['shape']} "
                f"{row['way']} {row['ratio']:.3f} of {goal['bound']}",
                file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--size", type=int, default=512 << 20)
    parser.add_argument("--block", type=int, default=1 << 20)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    library, context, rows = v.load(), v.velo_context(), []
    v.check(library, library.velo_context_create(None, ctypes.byref(context)))

    def tell(row):
        rows.append(row)
        rounded = {
            key: round(value, 3) if isinstance(value, float) else value
            for key, value in row.items()
        }
        print(json.dumps(rounded) if options.json else "  ".join(
            f"{value}" for value in rounded.values()),
              flush=True)

    for row in disk_rows(library, context, options):
        tell(row)
    for row in engine_rows(library, context, options):
        tell(row)
    tell(checksum_row(library, context, options))
    for row in host_rows(library, context, options):
        tell(row)
    judge(rows)


if __name__ == "__main__":
    main()
