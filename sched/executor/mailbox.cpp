// Queues between two threads, and waiting on them.
#include "sched/executor/mailbox.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

#include "core/handle/guard.hpp"
#include "core/host/clock.hpp"
#include "core/host/futex.hpp"
#include "core/index.hpp"

namespace velo::sched {

using core::fail;
using core::now_ns;
using core::text;

namespace {

constexpr std::int64_t spin_ns = 50000, yield_ns = 200000, longest_sleep_ns = 50000000;
constexpr std::uint64_t short_size = 48;
constexpr std::uint64_t segment_entries = 127;

// One cache line, the only one that a short message moves between two processors.
struct entry {
  unsigned char* memory;                 // of a long message, otherwise null
  std::atomic<std::uint64_t> filled{0};  // size + 1; 0: not filled yet
  unsigned char bytes[short_size];

  std::uint64_t size() const { return filled.load(std::memory_order_relaxed) - 1; }
};
static_assert(sizeof(entry) == 64);

struct alignas(64) segment {
  entry entries[segment_entries];
  segment* next;
};

}  // namespace

// The `user` of a link's functions encodes the mailbox and the rank in one word, so no object has
// to live as long as the link. A handle is a multiple of 64, and each set of functions serves 64
// ranks.
namespace {

constexpr std::uintptr_t ranks_in_block = 64;

velo_mailbox handle_of(void* user) noexcept {
  return reinterpret_cast<velo_mailbox>(reinterpret_cast<std::uintptr_t>(user) &
                                        ~(ranks_in_block - 1));
}

template <std::uintptr_t Block>
struct end_of {
  static std::int32_t rank(void* user) noexcept {
    return static_cast<std::int32_t>(Block * ranks_in_block +
                                     reinterpret_cast<std::uintptr_t>(user) % ranks_in_block);
  }
  static mailbox& box(void* user) { return core::resolve<mailbox>(handle_of(user), "link"); }

  static velo_status send(void* user, std::int32_t to, const void* bytes, std::uint64_t size) {
    return core::guard("velo_link.send", [&] { box(user).send(rank(user), to, bytes, size); });
  }
  static velo_status receive(void* user, std::int32_t from, void* bytes, std::uint64_t size) {
    return core::guard("velo_link.receive",
                       [&] { box(user).receive(rank(user), from, bytes, size); });
  }
  static void abort(void* user, const char* why) {
    if (core::live_slot(handle_of(user), core::kinds::mailbox) != nullptr)
      box(user).end(rank(user), why);
  }
};

template <std::uintptr_t Block>
velo_link link_of(void* user) {
  velo_link result = VELO_LINK_INIT;
  result.user = user;
  result.send = &end_of<Block>::send;
  result.receive = &end_of<Block>::receive;
  result.abort = &end_of<Block>::abort;
  return result;
}

}  // namespace

// A queue with one writer and one reader. Entries after `head` whose `filled` is set are readable.
class mailbox::queue {
 public:
  queue() : first_(new segment), last_(first_) {}
  ~queue() {
    while (!empty()) drop(front());
    delete first_;
  }
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;

  bool empty() const {
    return first_->entries[head_ % segment_entries].filled.load(std::memory_order_acquire) == 0;
  }

  void put(const void* bytes, std::uint64_t size) {
    const std::uint64_t at = tail_.load(std::memory_order_relaxed) % segment_entries;
    std::unique_ptr<segment> more;
    if (at + 1 == segment_entries) more = std::make_unique<segment>();
    entry& result = last_->entries[at];
    result.memory = size > short_size ? static_cast<unsigned char*>(::operator new(size)) : nullptr;
    if (size > 0) std::memcpy(size > short_size ? result.memory : result.bytes, bytes, size);
    if (more != nullptr) {
      last_->next = more.get();
      last_ = more.release();
    }
    result.filled.store(size + 1, std::memory_order_release);
    tail_.fetch_add(1, std::memory_order_acq_rel);
  }

  // A reader calls this after it announces its sleep and before it checks for messages again. Both
  // sides change tail, so one change comes first. If it is the reader's, the writer sees that the
  // reader sleeps; if it is the writer's, the reader sees the message. A fence on either side would
  // suffice, but the thread sanitizer does not support fences.
  void order() { tail_.fetch_add(0, std::memory_order_acq_rel); }

  // The reader calls these on a queue that is not empty.
  entry& front() { return first_->entries[head_ % segment_entries]; }
  void drop(entry& read) {
    ::operator delete(read.memory);
    if (++head_ % segment_entries != 0) return;
    delete std::exchange(first_, first_->next);
  }

 private:
  // The reader's members and the writer's have separate cache lines.
  alignas(64) std::uint64_t head_ = 0;
  segment* first_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  segment* last_;
};

mailbox::mailbox(std::int32_t ranks, std::int64_t timeout_ns)
    : ranks_(ranks),
      timeout_ns_(timeout_ns),
      spin_ns_(std::thread::hardware_concurrency() >= static_cast<unsigned>(ranks) ? spin_ns : 0),
      sleepers_(std::make_unique<sleeper[]>(static_cast<std::size_t>(ranks))),
      queues_(std::make_unique<std::atomic<queue*>[]>(static_cast<std::size_t>(ranks) *
                                                      static_cast<std::size_t>(ranks))) {}

mailbox::~mailbox() {
  const auto count = static_cast<std::size_t>(ranks_);
  for (std::size_t i = 0; i < count * count; ++i) delete queues_[i].load(std::memory_order_relaxed);
}

velo_link mailbox::link(std::int32_t rank) {
  constexpr velo_link (*of_block[])(void*) = {&link_of<0>, &link_of<1>, &link_of<2>, &link_of<3>};
  static_assert(std::size(of_block) * ranks_in_block == most_ranks);
  const auto handle = reinterpret_cast<std::uintptr_t>(core::handle_of(*this));
  const auto index = static_cast<std::uintptr_t>(rank);
  return of_block[index / ranks_in_block](reinterpret_cast<void*>(handle | index % ranks_in_block));
}

const void* mailbox_of_link(const velo_link& link) noexcept {
  const bool is_own = link.send == &end_of<0>::send || link.send == &end_of<1>::send ||
                      link.send == &end_of<2>::send || link.send == &end_of<3>::send;
  return is_own ? handle_of(link.user) : nullptr;
}

mailbox::queue& mailbox::between(std::int32_t from, std::int32_t to) {
  if (from < 0 || from >= ranks() || to < 0 || to >= ranks())
    fail(VELO_ERR_ARGUMENT, "rank", text("one of %d ranks", ranks()), text("%d to %d", from, to));
  std::atomic<queue*>& pointer =
      queues_[core::at(from) * core::at(ranks_) + static_cast<std::size_t>(to)];
  if (queue* there = pointer.load(std::memory_order_acquire)) return *there;
  const std::lock_guard<std::mutex> alone(lock_);
  if (pointer.load(std::memory_order_relaxed) == nullptr)
    pointer.store(new queue, std::memory_order_release);
  return *pointer.load(std::memory_order_relaxed);
}

void mailbox::send(std::int32_t from, std::int32_t to, const void* bytes, std::uint64_t size) {
  if (ended_.load(std::memory_order_acquire)) raise();
  between(from, to).put(bytes,
                        size);  // writes the message before it checks whether the reader sleeps
  sleeper& at = sleepers_[core::at(to)];
  if (at.sleeps.load(std::memory_order_relaxed) != 0) wake(at);
}

void mailbox::wake(sleeper& at) noexcept {
  at.wakeups.fetch_add(1, std::memory_order_release);
  core::futex_wake(at.wakeups, 1);
}

void mailbox::receive(std::int32_t at, std::int32_t from, void* bytes, std::uint64_t size) {
  queue& box = between(from, at);
  if (box.empty()) await(box, at, from);
  entry& found = box.front();
  if (found.size() != size)
    fail(VELO_ERR_PEER, "link", core::concat("a message of ", size, " bytes"),
         core::concat("one of ", found.size(), " from rank ", from));
  if (size > 0) std::memcpy(bytes, size > short_size ? found.memory : found.bytes, size);
  box.drop(found);
}

void mailbox::await(queue& box, std::int32_t at, std::int32_t from) {
  for (int i = 0; i < 256; ++i) {  // a few microseconds
    if (!box.empty()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  const std::int64_t begin = now_ns();
  while (box.empty()) {
    if (ended_.load(std::memory_order_acquire)) raise();
    const std::int64_t waited = now_ns() - begin;
    if (waited >= timeout_ns_) {
      const text why("rank %d waited %.3g s for rank %d", at, static_cast<double>(waited) / 1e9,
                     from);
      end(at, why);
      fail(VELO_ERR_TIMEOUT, "link", text("a message from rank %d", from), "none", why);
    }
    if (waited < spin_ns_) continue;
    if (waited < spin_ns_ + yield_ns)
      sched_yield();
    else
      sleep(box, at, std::min(longest_sleep_ns, timeout_ns_ - waited));
  }
}

void mailbox::sleep(queue& box, std::int32_t at, std::int64_t longest_ns) {
  sleeper& mine = sleepers_[core::at(at)];
  const std::uint32_t seen = mine.wakeups.load(std::memory_order_acquire);
  mine.sleeps.store(1, std::memory_order_relaxed);
  box.order();  // announces the sleep before it checks for messages
  if (box.empty() && !ended_.load(std::memory_order_acquire)) {
    const timespec longest{longest_ns / 1000000000, longest_ns % 1000000000};
    core::futex_wait(mine.wakeups, seen, &longest);
  }
  mine.sleeps.store(0, std::memory_order_relaxed);
}

void mailbox::end(std::int32_t rank, const char* why) noexcept {
  {
    const std::lock_guard<std::mutex> alone(lock_);
    if (failed_rank_ < 0) {
      failed_rank_ = rank;
      core::copy_text(cause_, sizeof cause_, why);
    }
  }
  ended_.store(true, std::memory_order_release);
  for (std::int32_t i = 0; i < ranks(); ++i) wake(sleepers_[core::at(i)]);
}

void mailbox::raise() {
  core::failure ended;
  {
    const std::lock_guard<std::mutex> alone(lock_);
    ended.rank = failed_rank_;
    core::copy_text(ended.cause, sizeof ended.cause, cause_);
  }
  ended.code = VELO_ERR_PEER;
  core::copy_text(ended.argument, sizeof ended.argument, "link");
  core::copy_text(ended.expected, sizeof ended.expected, "all ranks to go on");
  core::copy_text(ended.got, sizeof ended.got, text("an end by rank %d", ended.rank));
  throw ended;
}

}  // namespace velo::sched
