// The pool's free list, and how a piece of work ends.
#include "core/stream/work.hpp"

namespace velo::core {

void work_deleter::operator()(work* piece) const noexcept {
  work_pool* home = piece->home_;
  void* block = piece->block_;
  piece->~work();
  home != nullptr ? home->give(block) : ::operator delete(block);
}

work_pool::~work_pool() {
  while (free_ != nullptr) ::operator delete(std::exchange(free_, free_->next));
}

void* work_pool::take() {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (free_ != nullptr) {
      --kept_;
      return std::exchange(free_, free_->next);
    }
  }
  return ::operator new(block_bytes);
}

void work_pool::give(void* block) noexcept {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (kept_ < most_kept) {
      free_ = new (block) free_block{free_};
      ++kept_;
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace velo::core
