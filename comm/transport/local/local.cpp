// Memory of zeros that goes with the last rank that uses it, and how ranks meet for a part.
#include "comm/transport/local/local.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "comm/transport/shared/shared_transport.hpp"
#include "comm/transport/shm/packet.hpp"

namespace velo::comm {
namespace {

using links = std::vector<std::unique_ptr<transport>>;

// The last rank that comes makes the part for all. One part at most of the same ranks, or of the
// same attempt to shrink, is being met for, since none of them goes on before all have come.
class threads_hall final : public hall {
 public:
  std::unique_ptr<transport> meet(const part_terms& of,
                                  const std::function<void()>& glance) override {
    const deadline until = deadline::after(of.timeout_ns);
    std::unique_lock<std::mutex> lock(lock_);
    std::shared_ptr<party>& found = parties_[key_of(of)];
    if (found == nullptr) found = std::make_shared<party>(of.ranks.size());
    const std::shared_ptr<party> with = found;
    join(*with, of);
    try {
      while (with->made.empty()) {
        if (with->late.lowest() >= 0) throw not_there{with->late};
        glance();
        if (until.is_over()) {
          give_up(*with, of);
        } else {
          came_.wait_for(lock, std::min(pause, std::chrono::nanoseconds(until.left_ns())));
        }
      }
    } catch (...) {
      with->waiting[place_of(of)] = false;
      throw;
    }
    return std::move(with->made[place_of(of)]);
  }

 private:
  static constexpr std::chrono::nanoseconds pause{50000000};

  struct party {
    explicit party(std::size_t size) : waiting(size) {}
    rank_set missing() const {
      rank_set all;
      for (std::size_t place = 0; place < waiting.size(); ++place)
        if (!waiting[place]) all.add(static_cast<int>(place));
      return all;
    }

    std::vector<bool> waiting;
    std::size_t slot_bytes = 0;
    std::int64_t timeout_ns = 0;
    links made;
    rank_set late;  // when the first of those that wait has waited enough
  };

  using key = std::pair<std::uint64_t, std::vector<int>>;
  static key key_of(const part_terms& of) { return {of.round, of.ranks}; }
  static std::size_t place_of(const part_terms& of) { return static_cast<std::size_t>(of.place); }

  void join(party& with, const part_terms& of) {
    if (of.place == 0) with.slot_bytes = of.slot_bytes, with.timeout_ns = of.timeout_ns;
    with.waiting[place_of(of)] = true;
    if (with.missing().lowest() >= 0) return;
    try {
      with.made = make_local(static_cast<int>(of.ranks.size()), with.slot_bytes, with.timeout_ns);
    } catch (...) {
      with.waiting[place_of(of)] = false;
      throw;
    }
    parties_.erase(key_of(of));
    came_.notify_all();
  }

  // For all that wait, so that they name the same ranks.
  void give_up(party& with, const part_terms& of) {
    with.late = with.missing();
    parties_.erase(key_of(of));
    came_.notify_all();
  }

  std::mutex lock_;  // guards what follows
  std::condition_variable came_;
  std::map<key, std::shared_ptr<party>> parties_;
};

}  // namespace

std::vector<std::unique_ptr<transport>> make_local(int ranks, std::size_t slot_bytes,
                                                   std::int64_t timeout_ns) {
  const std::size_t bytes = shared_area::bytes_for(ranks, slot_bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<void> kept(memory, [bytes](void* p) { munmap(p, bytes); });
  const shared_area area(memory, ranks, slot_bytes, core::sleepers::of_process);
  const auto parts = std::make_shared<threads_hall>();
  links all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<shared_transport>(
        shared_transport::setting{VELO_TRANSPORT_LOCAL, rank, timeout_ns}, area, kept, nullptr,
        parts));
  return all;
}

}  // namespace velo::comm
