// A warmed-up sequence of operators, of queued work and events, or of planned collectives allocates
// no memory: from malloc, the operating system or the host's allocator. And no memory but that of
// closures is made executable.
//
// This is a program of its own, because it replaces malloc, mmap and mprotect: it counts calls and
// forwards them.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/stream/stream.hpp"
#include "tests/ops/example_call.hpp"
#include "tests/ops/operator_testing.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0}, mappings{0}, executable{0}, requests{0};

void count(std::atomic<int>& what) {
  if (counting.load(std::memory_order_relaxed)) what.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#pragma GCC visibility push(default)  // shared libraries call these, too
extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count(allocations);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  count(allocations);
  return __libc_calloc(items, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count(allocations);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(allocations);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(allocations);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr;
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  count(mappings);
  if ((protection & PROT_EXEC) != 0) count(executable);
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
int mprotect(void* address, std::size_t bytes, int protection) {
  if ((protection & PROT_EXEC) != 0) count(executable);
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

}  // extern "C"
#pragma GCC visibility pop

using namespace velo;
using namespace velo::testing;

namespace {

void* allocate(void*, std::uint64_t bytes, std::uint64_t alignment, const velo_device*, void*) {
  count(requests);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void deallocate(void*, void* memory, std::uint64_t, const velo_device*, void*) {
  std::free(memory);
}

const velo_allocator host_allocator = {sizeof(velo_allocator), 0, nullptr, &allocate, &deallocate};

struct hosted_context : live_context {
  explicit hosted_context(int threads) : live_context(desc_of(threads)) {}

 private:
  static velo_context_desc desc_of(int threads) {
    const velo_context_desc desc = context_desc(threads, &host_allocator);
    return desc;
  }
};

// Runs calls [first, last) once and returns how many failed. The test itself may not allocate here.
int run_some(const std::deque<example_call>& calls, std::size_t first, std::size_t last,
             velo_stream stream) {
  int failures = 0;
  for (std::size_t i = first; i < last; ++i) failures += calls[i].run(stream) != VELO_OK;
  return failures;
}
// Calls of all operators but context_parallel_attention, which makes the lists of its rank in each
// call.
std::deque<example_call> all_calls() {
  std::deque<example_call> calls;
  for (const hosts::sample& sample : hosts::samples(true))
    if (sample.op.find("context_parallel_attention") != 0) calls.emplace_back(sample);
  return calls;
}
int run_all(const std::deque<example_call>& calls, velo_stream stream) {
  return run_some(calls, 0, calls.size(), stream);
}

}  // namespace

TEST_CASE("the counters count allocations and executable memory") {
  allocations = mappings = 0;
  counting = true;
  std::free(std::malloc(100));
  delete new int(1);
  ::munmap(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
  std::vector<int>(100).at(1) = 1;
  counting = false;
  CHECK(allocations >= 1);  // a compiler may leave pairs out
  CHECK(mappings == 1);
}

TEST_CASE("a warmed-up sequence of operators allocates nothing, for any number of threads") {
  for (const int threads : {1, 3}) {
    INFO("threads " << threads);
    const std::deque<example_call> calls = all_calls();
    requests = 0;
    const hosted_context on(threads);
    counting = true;
    CHECK(run_all(calls, on.inline_stream()) == 0);
    counting = false;
    CHECK(requests > 0);  // scratch does come from the host
    for (int round = 0; round < 2; ++round) REQUIRE(run_all(calls, on.inline_stream()) == 0);
    allocations = mappings = requests = 0;
    counting = true;
    int failures = 0;
    for (int round = 0; round < 3; ++round) failures += run_all(calls, on.inline_stream());
    counting = false;
    CHECK(failures == 0);
    CHECK(allocations == 0);
    CHECK(mappings == 0);
    CHECK(requests == 0);
  }
}

// Code that is written at run time needs memory that is made executable.
TEST_CASE("with closures off nothing is made executable, whatever runs") {
  int made[2] =
      {};  // closures off, on; asking whether they are available makes one, so that is last
  for (const bool closures : {false, true}) {
    std::deque<example_call> calls;
    for (const hosts::sample& sample : hosts::samples(true)) calls.emplace_back(sample);
    executable = 0;
    counting = true;
    {
      session s(2, closures ? R"({"closures": true})" : R"({"closures": false})");
      CHECK(run_all(calls, s.stream()) == 0);
      void* function = nullptr;
      velo_closure closure = nullptr;
      CHECK(velo_closure_create(s.stream(), "add", "a, b, y", &function, &closure) == VELO_OK);
    }
    counting = false;
    made[closures] = executable;
  }
  CHECK(made[0] == 0);
  std::int32_t available = 0;
  REQUIRE(velo_capability_query(VELO_CAP_CLOSURES, &available) == VELO_OK);
  if (available == 1) CHECK(made[1] > 0);
}

TEST_CASE("operators, other work and events on a warmed-up queue allocate nothing") {
  struct step final : core::work {
    step(core::demand what, int& count, core::point* until)
        : work(what), count_(count), until_(until) {}
    void run(core::execution&) override {
      until_->wait(-1);
      ++count_;
    }

   private:
    int& count_;
    core::point* until_;
  };
  const std::deque<example_call> calls = all_calls();
  const hosted_context on(2);
  core::stream& now = core::resolve<core::stream>(on.inline_stream(), "stream");
  core::stream& queue =
      core::make_object<core::stream>(&now.owner(), now.owner(), core::stream::mode::queued);
  const velo_stream handle = core::handle_of(queue);
  core::event filled(now.owner()), drained(now.owner());
  core::point go;  // opened when the queue is full: every round has the same depth
  int waited = 0, computed = 0, failures = 0;
  const auto round_of = [&](std::size_t first, std::size_t last) {
    go.reopen();
    queue.enqueue(queue.make<step>(core::demand::waits, waited, &go));
    failures += run_some(calls, first, last, handle);
    queue.enqueue(queue.make<step>(core::demand::computes, computed, &go));
    queue.record(filled);
    go.pass();
    now.wait(filled);
    now.record(drained);
    queue.wait(drained);
    queue.synchronize();
  };
  constexpr std::size_t together = 512;  // fewer than the blocks that a context keeps
  int parts = 0;
  const auto round = [&] {
    parts = 0;
    for (std::size_t at = 0; at < calls.size(); at += together, ++parts)
      round_of(at, std::min(at + together, calls.size()));
  };
  for (int i = 0; i < 3; ++i) round();
  allocations = mappings = requests = 0;
  counting = true;
  for (int i = 0; i < 5; ++i) round();
  counting = false;
  CHECK(failures == 0);
  CHECK(allocations == 0);
  CHECK(mappings == 0);
  CHECK(requests == 0);
  CHECK(waited == 8 * parts);
  CHECK(computed == 8 * parts);
}

namespace {

// The planned calls of one of three ranks: some of every algorithm over shared memory.
class plans {
 public:
  plans(velo_group group, int rank) {
    const std::int64_t few = 2, many = 30000, third = 10000, counts[] = {1000, 0, 29000},
                       own = counts[rank];
    const auto tensor = [](std::vector<float>& of, const std::int64_t& count) {
      return view_of(of.data(), f32, count);
    };
    const velo_tensor small = tensor(in_, few), large = tensor(in_, many),
                      part = tensor(in_, third), other = tensor(out_, many),
                      small_other = tensor(out_, few), part_other = tensor(out_, third),
                      uneven = tensor(in_, own);
    const velo_group_message both[] = {{&part, (rank + 1) % 3, VELO_MESSAGE_SEND},
                                       {&part_other, (rank + 2) % 3, VELO_MESSAGE_RECEIVE}};
    velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
    const auto create = [&] {
      all_.emplace_back();
      REQUIRE(velo_collective_create(group, &desc, &all_.back()) == VELO_OK);
    };
    create();  // a barrier
    desc.out_counts = counts;
    desc.messages = both;
    desc.message_count = 2;
    const auto add = [&](velo_collective_kind kind, const velo_tensor& in, const velo_tensor& out) {
      desc.kind = kind;
      desc.in = &in;
      desc.out = &out;
      create();
    };
    add(VELO_COLLECTIVE_ALL_REDUCE, small, small_other);
    add(VELO_COLLECTIVE_ALL_REDUCE, large, other);
    add(VELO_COLLECTIVE_REDUCE, large, other);
    add(VELO_COLLECTIVE_BROADCAST, large, other);
    add(VELO_COLLECTIVE_ALL_GATHER, part, other);
    add(VELO_COLLECTIVE_ALL_GATHER_V, uneven, other);
    add(VELO_COLLECTIVE_REDUCE_SCATTER, large, part_other);
    add(VELO_COLLECTIVE_ALL_TO_ALL, large, other);
    add(VELO_COLLECTIVE_GATHER, part, other);
    add(VELO_COLLECTIVE_EXCHANGE, part, part_other);
  }
  ~plans() {
    for (const velo_collective one : all_) velo_collective_destroy(one);
  }
  plans(const plans&) = delete;

  int start(velo_stream stream) const {
    int failures = 0;
    for (const velo_collective one : all_)
      failures += velo_collective_start(stream, one) != VELO_OK;
    return failures;
  }
  int barrier(velo_stream stream) const {
    return velo_collective_start(stream, all_.front()) != VELO_OK;
  }

 private:
  std::vector<float> in_ = std::vector<float>(30000), out_ = std::vector<float>(30000);
  std::vector<velo_collective> all_;
};

}  // namespace

TEST_CASE("starts of planned collectives, at once or on a queue, allocate nothing") {
  const hosted_context one(1), two(1), three(1);
  const std::array<const hosted_context*, 3> contexts = {&one, &two, &three};
  const velo_context handles[] = {one, two, three};
  velo_group groups[3] = {};
  REQUIRE(velo_group_create_local(handles, 3, nullptr, groups) == VELO_OK);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  std::vector<velo_stream> queues(3);
  std::vector<velo_event> events(3);
  std::vector<std::unique_ptr<plans>> planned;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    queues[rank] = contexts[rank]->new_stream();
    events[rank] = contexts[rank]->new_event();
    planned.push_back(std::make_unique<plans>(groups[rank], static_cast<int>(rank)));
  }
  for (std::size_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const velo_stream now = contexts[rank]->inline_stream();
      const plans& mine = *planned[rank];
      const auto round = [&] {
        failures += mine.start(now) + mine.start(queues[rank]);
        failures += velo_event_record(events[rank], queues[rank]) != VELO_OK;
        failures += velo_event_synchronize(events[rank], -1) != VELO_OK;
      };
      for (int i = 0; i < 5; ++i) round();
      failures += mine.barrier(now);
      if (rank == 0) {
        allocations = mappings = requests = 0;
        counting = true;
      }
      failures += mine.barrier(now);
      for (int i = 0; i < 10; ++i) round();
      failures += mine.barrier(now);
      if (rank == 0) counting = false;
      failures += mine.barrier(now);
    });
  for (std::thread& each : threads) each.join();
  CHECK(failures == 0);
  CHECK(allocations == 0);
  CHECK(mappings == 0);
  CHECK(requests == 0);
  planned.clear();
  for (const velo_group group : groups) velo_group_destroy(group);
}
