// A tier: it holds the contents of objects while they are not in memory.
//
// An image is an object's copy in a tier; destroying it gives the space back. A tier asks for
// copies as it has room for them, so that the end of one overlaps the beginning of the next. One
// thread writes and another reads, with one call of each at a time, and both may run at once;
// images are made and ended on any thread. Offsets are multiples of the granule. Addresses may be
// those of a device's memory, which a tier for that device reads and writes by its own means: only
// the tier touches the bytes.
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

    virtual std::uint64_t stored() const noexcept = 0;  // bytes that the image takes in the tier
  };

  tier() = default;
  virtual ~tier() = default;
  tier(const tier&) = delete;
  tier& operator=(const tier&) = delete;

  virtual std::uint64_t granule() const noexcept = 0;

  // Makes an image of `bytes` bytes. cold: the object stays out for long, and may be packed. Throws
  // MEMORY, IO.
  virtual std::unique_ptr<image> make(std::uint64_t bytes, bool cold) = 0;

  // Bytes [offset, offset + bytes) of an object, between its memory and its image.
  struct copy {
    image* there = nullptr;
    std::uint64_t offset = 0;
    char* memory = nullptr;  // address of the first of these bytes
    std::uint64_t bytes = 0;
    void* owner = nullptr;  // for the caller's use
  };

  class copies {
   public:
    virtual bool next(copy& one) noexcept = 0;  // false: none is ready
    // why: MEMORY, IO; nullptr on success. After a failed write each granule of the image holds
    // either its old or its new contents.
    virtual void done(const copy& one, const core::failure* why) noexcept = 0;

   protected:
    ~copies() = default;
  };

  // Return when no copy is ready and all begun copies are done.
  virtual void write(copies& all) noexcept = 0;
  virtual void read(copies& all) noexcept = 0;

  virtual void fill(velo_swap_stats& stats) const noexcept = 0;  // bytes stored, checksums, how
};

}  // namespace velo::memory
