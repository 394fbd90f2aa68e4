"""A step run on the clock as velo_plan's swaps say: a thread that computes and one for each link,
which sleep for as long as the work they stand for takes. What they wait for is what a real step
waits for: a buffer that has not come back, memory that has not been left.

A transfer begins when the times it comes after are over, the one before it has ended and, coming
back, memory has room for it beside what the next stage needs first. A stage begins when what it
uses is there and what is in memory stays within the budget. Each thread counts from the end of its
own work before, unless it had to wait, so that sleeping a little too long is not added up.
"""
import threading
import time

import velo.ctypes as v

TIMEOUT = 60  # seconds, after which a step that makes no progress fails


class Sleeper:
    """Sleeps for work. `free_at` is when its work so far ends, which is the beginning of the next
    if nothing held that up."""

    def __init__(self):
        self.free_at = time.perf_counter()

    def work(self, seconds, waited):
        if waited:
            self.free_at = time.perf_counter()
        self.free_at += seconds
        remaining = self.free_at - time.perf_counter()
        if remaining > 0:
            time.sleep(remaining)


class Step:
    """stages: for each the indices of the buffers it uses; buffers: (first stage, last stage,
    bytes); transfers: (action, buffer, stage that is over when it begins), those of an action in
    their order."""

    def __init__(self, stages, buffers, transfers, seconds, rate, budget):
        self.uses, self.buffers = stages, buffers
        self.seconds, self.rate, self.budget = seconds, rate, budget
        self.links = {
            action: [t for t in transfers if t[0] == action]
            for action in (v.VELO_SWAP_ACTION_OUT, v.VELO_SWAP_ACTION_IN)
        }
        self.begins = [[] for _ in stages]
        self.ends = [[] for _ in stages]
        for index, (first, last, _) in enumerate(buffers):
            self.begins[first].append(index)
            self.ends[last].append(index)
        self.coming = [sum(buffers[index][2] for index in begun) for begun in self.begins]
        self.changed = threading.Condition()
        # stages that are over and have begun, bytes in memory
        self.over, self.begun, self.held, self.peak = -1, -1, 0, 0
        self.usable, self.failure = set(), None

    def run(self):
        """Seconds from the first stage's beginning to the last one's end."""
        threads = [
            threading.Thread(target=self.guarded, args=(self.move, action)) for action in self.links
        ]
        begin = time.perf_counter()
        for one in threads:
            one.start()
        self.guarded(self.compute)
        took = time.perf_counter() - begin
        for one in threads:
            one.join()
        if self.failure:
            raise self.failure
        return took

    def guarded(self, of, *arguments):
        try:
            of(*arguments)
        except Exception as failure:
            with self.changed:
                self.failure = self.failure or failure
                self.changed.notify_all()

    def wait(self, until, what):
        """With the lock. Whether it had to wait."""
        if until():
            return False
        if not self.changed.wait_for(lambda: self.failure or until(), TIMEOUT):
            raise TimeoutError(f"{what} did not begin within {TIMEOUT} s")
        if self.failure:
            raise self.failure
        return True

    def hold(self, size):
        self.held += size
        self.peak = max(self.peak, self.held)
        if self.held > self.budget:
            raise MemoryError(f"{self.held} bytes in memory, {self.budget} allowed")

    def compute(self):
        sleeper = Sleeper()
        for stage, used in enumerate(self.uses):
            there = [index for index in used if self.buffers[index][0] < stage]
            with self.changed:
                waited = self.wait(
                    lambda: self.held + self.coming[stage] <= self.budget and self.usable.
                    issuperset(there), f"stage {stage}")
                self.hold(self.coming[stage])
                self.begun = stage
                self.changed.notify_all()
            sleeper.work(self.seconds, waited)
            with self.changed:
                self.usable.update(self.begins[stage])
                there = self.usable.intersection(
                    self.ends[stage]
                )  # what is away, or on its way there, is not in memory any more
                self.usable -= there
                self.held -= sum(self.buffers[index][2] for index in there)
                self.over = stage
                self.changed.notify_all()

    def has_room(self, index, after):
        """For a buffer that comes back. Beside the stage that follows `after`, as long as that has
        not begun and needs another."""
        stage, size = after + 1, self.buffers[index][2]
        waits = self.begun < stage < len(self.uses) and index not in self.uses[stage]
        return self.held + size + (self.coming[stage] if waits else 0) <= self.budget

    def move(self, action):
        sleeper, leaves = Sleeper(), action == v.VELO_SWAP_ACTION_OUT
        for _, index, after in self.links[action]:
            size = self.buffers[index][2]
            with self.changed:
                can = (lambda: self.over >= after and index in self.usable) if leaves else (
                    lambda: self.over >= after and self.has_room(index, after))
                waited = self.wait(can, f"transfer of buffer {index}")
                if leaves:
                    self.usable.remove(index)
                else:
                    self.hold(size)
            sleeper.work(size / self.rate, waited)
            with self.changed:
                if leaves:
                    self.held -= size
                else:
                    self.usable.add(index)
                self.changed.notify_all()
