// Makes and removes the caches of threads, and finds one without the table.
#include "memory/pool/cache/thread_caches.hpp"

#include <new>
#include <utility>

namespace velo::memory {

thread_caches::thread_caches(bool enabled, void (*on_thread_end)(void*)) noexcept
    : has_key_(enabled && pthread_key_create(&key_, on_thread_end) == 0) {}

void thread_caches::close() noexcept {
  if (has_key_) pthread_key_delete(key_);
  has_key_ = false;
}

thread_caches::~thread_caches() {
  close();
  while (first_ != nullptr) free_cache(*std::exchange(first_, first_->next));
}

__attribute__((noinline)) thread_cache* thread_caches::find_by_key() const noexcept {
  return has_key_ ? static_cast<thread_cache*>(pthread_getspecific(key_)) : nullptr;
}

void thread_caches::free_cache(thread_cache& gone) noexcept {
  if (!table_.remove(gone)) delete &gone;
}

thread_cache* thread_caches::make(pool& owner, char* base) noexcept {
  if (!has_key_) return nullptr;
  const std::uint32_t drains = drains_.load(std::memory_order_relaxed);
  thread_cache* made = table_.add(owner, base, drains, handle_);
  if (made == nullptr) made = new (std::nothrow) thread_cache(owner, base, drains);
  if (made == nullptr) return nullptr;
  if (pthread_setspecific(key_, made) == 0) return made;
  free_cache(*made);
  return nullptr;
}

void thread_caches::add(thread_cache& made) noexcept {
  made.next = first_;
  if (first_ != nullptr) first_->before = &made;
  first_ = &made;
  several_.store(made.next != nullptr, std::memory_order_relaxed);
}

void thread_caches::remove(thread_cache& ended) noexcept {
  ended.counted.settle_wholly(levels_);
  shared_.inherit(ended.counted);
  (ended.before != nullptr ? ended.before->next : first_) = ended.next;
  if (ended.next != nullptr) ended.next->before = ended.before;
  several_.store(first_ != nullptr && first_->next != nullptr, std::memory_order_relaxed);
  free_cache(ended);
}

}  // namespace velo::memory
