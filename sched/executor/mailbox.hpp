// Mailboxes of ranks that are threads of one process: the simplest link.
//
// Every pair of ranks has a queue with one writer and one reader: linked segments of entries, to
// which segments are added as they fill up, so sending never blocks. A short message is stored in
// its entry, a long one in memory of its own; the sender and the receiver each copy it once. A
// waiting rank spins briefly if there is a processor for each rank, then yields, then sleeps on a
// condition variable of its own.
//
// The first failure that any rank reports ends the mailbox; waiting ranks wake up and receive it.
// Memory: that of the messages that were sent and not yet received.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "velo/executor.h"

namespace velo::sched {

class mailbox {
 public:
  static constexpr std::int32_t most_ranks = 256;

  // timeout_ns: the longest time for which a rank waits for a message.
  mailbox(std::int32_t ranks, std::int64_t timeout_ns);
  ~mailbox();
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  std::int32_t ranks() const { return ranks_; }
  velo_link link(std::int32_t rank);  // its functions return HANDLE once the mailbox is destroyed

  void send(std::int32_t from, std::int32_t to, const void* bytes, std::uint64_t size);
  // Throws TIMEOUT, and PEER if the mailbox has ended or the message has another size.
  void receive(std::int32_t at, std::int32_t from, void* bytes, std::uint64_t size);
  // From any thread; only the first call counts.
  void end(std::int32_t rank, const char* why) noexcept;

 private:
  class queue;
  struct alignas(64) sleeper {
    std::atomic<std::uint32_t> wakeups{0};
    std::atomic<std::uint32_t> sleeps{0};
  };

  queue& between(std::int32_t from, std::int32_t to);
  void await(queue& from_peer, std::int32_t at, std::int32_t from);
  void sleep(queue& from_peer, std::int32_t at, std::int64_t longest_ns);
  void wake(sleeper& at) noexcept;
  [[noreturn]] void raise();

  const std::int32_t ranks_;
  const std::int64_t timeout_ns_;
  const std::int64_t spin_ns_;
  std::unique_ptr<sleeper[]> sleepers_;
  std::unique_ptr<std::atomic<queue*>[]> queues_;  // from * ranks + to; made when first used
  std::atomic<bool> ended_{false};
  std::mutex lock_;                // guards the members below
  std::int32_t failed_rank_ = -1;  // the rank that ended the mailbox, and its reason
  char cause_[256] = "";
};

// The handle of the mailbox behind a link; nullptr for other links.
const void* mailbox_of_link(const velo_link& link) noexcept;

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::mailbox> {
  using handle = velo_mailbox;
  static constexpr handle_kind& kind = kinds::mailbox;
};
