// Blocks are allocated and freed without a stream, since only the swap's threads use them.
#include "memory/swap/host_tier.hpp"

#include <cstring>

#include "core/failure.hpp"

namespace velo::memory {
namespace {

constexpr std::uint64_t page = 4096;  // alignment of memory into which files are read directly

class host_image final : public tier::image {
 public:
  host_image(velo_pool from, pool* own, std::uint64_t bytes, std::atomic<std::uint64_t>& stored)
      : from_(from), own_(own), bytes_(bytes), stored_(stored), memory_(take()) {
    stored_.fetch_add(bytes_, std::memory_order_relaxed);
  }
  ~host_image() override {
    stored_.fetch_sub(bytes_, std::memory_order_relaxed);
    try {
      own_ != nullptr ? static_cast<void>(own_->free(memory_, bytes_, nullptr))
                      : free_to(from_, memory_, bytes_, nullptr);
    } catch (...) {  // the block is no longer the pool's, since someone else freed it
      return;
    }
  }

  std::uint64_t stored() const noexcept override { return bytes_; }
  char* memory() const noexcept { return static_cast<char*>(memory_); }

 private:
  void* take() const {
    return own_ != nullptr ? own_->allocate({bytes_, unit}) : allocate_from(from_, bytes_);
  }

  velo_pool from_;
  pool* own_;
  std::uint64_t bytes_;
  std::atomic<std::uint64_t>& stored_;  // the tier's counter
  void* memory_;
};

std::unique_ptr<pool> make_pool() {
  const velo_pool_desc desc = VELO_POOL_DESC_INIT;
  return std::make_unique<pool>(desc);
}

}  // namespace

void* allocate_from(velo_pool from, std::uint64_t bytes) {
  auto& found = core::resolve<pool>(from, "pool");
  if (found.is_closed()) core::fail(VELO_ERR_HANDLE, "pool", "a pool", "a destroyed pool");
  return found.allocate({bytes, bytes < page ? unit : page});
}

void free_to(velo_pool to, void* memory, std::uint64_t bytes, velo_stream stream) {
  if (core::resolve<pool>(to, "pool").free(memory, bytes, stream))
    core::destroy_handle<pool>(to, "pool");
}

host_tier::host_tier(velo_pool from) : from_(from), own_(from == nullptr ? make_pool() : nullptr) {}

std::unique_ptr<tier::image> host_tier::make(std::uint64_t bytes, bool) {
  return std::make_unique<host_image>(from_, own_.get(), bytes, stored_);
}

void host_tier::write(copies& all) noexcept {
  for (copy one; all.next(one); all.done(one, nullptr))
    std::memcpy(static_cast<host_image*>(one.there)->memory() + one.offset, one.memory, one.bytes);
}

void host_tier::read(copies& all) noexcept {
  for (copy one; all.next(one); all.done(one, nullptr))
    std::memcpy(one.memory, static_cast<host_image*>(one.there)->memory() + one.offset, one.bytes);
}

void host_tier::fill(velo_swap_stats& stats) const noexcept {
  stats.engine = VELO_SWAP_ENGINE_COPY;
  stats.bytes_stored = stored_.load(std::memory_order_relaxed);
  core::copy_text(stats.how, sizeof stats.how,
                  from_ != nullptr ? "copies into blocks of a pool"
                                   : "copies into blocks of a pool of its own");
}

}  // namespace velo::memory
