// A tier: where the contents of objects wait while they are not in memory.
//
// An image is an object's copy in a tier; destroying it gives the space back. A tier asks for
// copies as it has room for them, so that the end of one overlaps the beginning of the next. Writes
// come from one thread and reads from another, one call of each at a time, and both may be under
// way at once; images are made and end on any thread. Offsets are multiples of the granule.
// Addresses may be those of a device's memory, which a tier for it reads and writes by its own
// means: only the tier touches the bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "core/failure.hpp"
#include "velo/swap.h"

namespace velo::memory {

class tier {
 public:
  class image {
   public:
    image() = default;
    virtual ~image() = default;
    image(const image&) = delete;
    image& operator=(const image&) = delete;

    virtual std::uint64_t stored() const noexcept = 0;  // bytes that it takes
  };

  tier() = default;
  virtual ~tier() = default;
  tier(const tier&) = delete;
  tier& operator=(const tier&) = delete;

  virtual std::uint64_t granule() const noexcept = 0;

  // For an object of `bytes` bytes. cold: it stays long, and may be packed. Throws MEMORY, IO.
  virtual std::unique_ptr<image> make(std::uint64_t bytes, bool cold) = 0;

  // Bytes [offset, offset + bytes) of an object, between its memory and its image.
  struct copy {
    image* there = nullptr;
    std::uint64_t offset = 0;
    char* memory = nullptr;  // of the first of these bytes
    std::uint64_t bytes = 0;
    void* owner = nullptr;  // whoever asked for it knows what this is
  };

  class copies {
   public:
    virtual bool next(copy& one) noexcept = 0;  // false: none is ready now
    // why: MEMORY, IO; nullptr when all went well. An image that was written keeps in each granule
    // what was there or what was to be.
    virtual void done(const copy& one, const core::failure* why) noexcept = 0;

   protected:
    ~copies() = default;
  };

  // Until none is ready and all that were are done.
  virtual void write(copies& all) noexcept = 0;
  virtual void read(copies& all) noexcept = 0;

  virtual void fill(velo_swap_stats& stats) const noexcept = 0;  // bytes stored, checksums, how
};

}  // namespace velo::memory
