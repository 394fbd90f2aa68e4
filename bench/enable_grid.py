"""That enabling never loses: small Llamas in training, prefill and decode, stock and enabled in
turns (bench_torch_enable.py --grid).

A piece of work is a training step of 128 symbols, a forward of 128 (prefill), or 16 symbols
generated behind 16 with a cache (decode). Both sides are one model in one process, so that they
share the pages and the caches' mood: a turn is a block of pieces stock and a block enabled, next to
each other, the first piece after each change untimed, and gives one ratio of their medians. A cell
is the median ratio over the turns. Turns are taken until its 95 % interval is narrower than 0.02,
at most `seconds` a cell.
"""
import gc
import math
import statistics
import time

BLOCK = 0.04  # seconds
NARROW = 0.02
LEAST, MOST = 9, 201  # turns
FLOOR = 0.98


def works_of(torch, model, optimizer):
    """{work: function that does one piece of it}."""
    ids = torch.randint(0,
                        model.config.vocab_size, (1, 128),
                        generator=torch.Generator().manual_seed(1))

    def training():
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer().step()
        optimizer().zero_grad()

    @torch.no_grad()
    def prefill():
        model(input_ids=ids)

    @torch.no_grad()
    def decode():
        model.generate(ids[:, :16],
                       attention_mask=torch.ones_like(ids[:, :16]),
                       max_new_tokens=16,
                       do_sample=False)

    return {"training": training, "prefill": prefill, "decode": decode}


def seconds_of(work):
    """The median of a block of pieces."""
    work()
    pieces, end = [], time.perf_counter() + BLOCK
    while not pieces or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        pieces.append(time.perf_counter() - start)
    return statistics.median(pieces)


def interval(ratios):
    """Of the median, 95 %, by the ranks of a binomial distribution."""
    ordered, count = sorted(ratios), len(ratios)
    reach = math.ceil(0.98 * math.sqrt(count))
    return ordered[max(count // 2 - reach, 0)], ordered[min(count // 2 + reach, count - 1)]


class Sides:
    """One model, stock or enabled; each side has an AdamW of its own, made while its name leads to
    it."""

    def __init__(self, torch, enable, model):
        self.torch, self.enable, self.model, self.optimizers = torch, enable, model, {}

    def optimizer(self):
        return self.optimizers[self.enabled]

    def seconds(self, work, enabled):
        self.enabled, done = enabled, self.enable(self.model) if enabled else None
        if enabled not in self.optimizers:
            self.optimizers[enabled] = self.torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        gc.collect()
        gc.disable()
        try:
            return seconds_of(work)
        finally:
            gc.enable()
            if done is not None:
                done.disable()


def cell(sides, work, seconds):
    """(ratios by turn, the stock medians)."""
    ratios, stock, end = [], [], time.perf_counter() + seconds
    while len(ratios) < MOST:
        order = (False, True) if len(ratios) % 2 else (True, False)
        took = {enabled: sides.seconds(work, enabled) for enabled in order}
        ratios.append(took[False] / took[True])
        stock.append(took[False])
        low, high = interval(ratios)
        if len(ratios) >= LEAST and (high - low < NARROW or time.perf_counter() > end):
            break
    return ratios, stock


def run(torch, enable, make_model, options):
    """Prints a line a cell; the cells below the floor."""
    torch.set_num_threads(options.threads)
    lost = []
    for hidden in map(int, options.hidden.split(",")):
        heads = max(hidden // 64, 4)
        size = {
            "hidden": hidden, "layers": 4 if hidden in (256, 512) else 2, "inner": hidden * 11 // 4,
            "heads": heads, "kv_heads": heads // 2, "vocab": 4096
        }
        sides = Sides(torch, enable, make_model(options.dtype, torch, size, cache=True).eval())
        works = works_of(torch, sides.model, sides.optimizer)
        for work in options.work.split(","):
            ratios, stock = cell(sides, works[work], options.seconds)
            low, high = interval(ratios)
            ratio = statistics.median(ratios)
            print(
                f"{options.dtype:4} {options.threads}T hidden {hidden:4} {work:8} stock "
                f"{statistics.median(stock) * 1e3:8.2f} ms, "
                f"velo {ratio:5.3f}x ({low:.3f} to {high:.3f}, {len(ratios)} turns)",
                flush=True)
            if ratio < FLOOR:
                lost.append(f"hidden {hidden} {work}")
    return lost
