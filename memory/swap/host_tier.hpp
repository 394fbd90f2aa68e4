// The host tier: an image is a block of a pool, a copy is one memcpy.
//
// The pool is the caller's or the tier's own. The tier's own pool keeps the pages of ended images
// for new ones, since touching pages for the first time costs more than the copy. Cost: the copy.
#pragma once

#include <atomic>
#include <memory>

#include "memory/pool/pool.hpp"
#include "memory/swap/tier.hpp"

namespace velo::memory {

class host_tier final : public tier {
 public:
  explicit host_tier(velo_pool from);  // nullptr: a pool of its own; throws MEMORY

  std::uint64_t granule() const noexcept override { return unit; }
  std::unique_ptr<image> make(std::uint64_t bytes, bool cold) override;
  void write(copies& all) noexcept override;
  void read(copies& all) noexcept override;
  void fill(velo_swap_stats& stats) const noexcept override;

 private:
  const velo_pool from_;
  std::unique_ptr<pool> own_;
  std::atomic<std::uint64_t> stored_{0};
};

// Memory of a pool that was given as a handle. Closing that pool waits for the last block.
void* allocate_from(velo_pool from, std::uint64_t bytes);  // throws HANDLE, MEMORY, FOREIGN
void free_to(velo_pool to, void* memory, std::uint64_t bytes,
             velo_stream stream);  // throws as pool::free does

}  // namespace velo::memory
