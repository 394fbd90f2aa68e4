// A tier: where the contents of objects wait while they are not in memory.
//
// An image is what one object is in a tier; its end gives the space back. Writes come from one
// thread and reads from another, one of each at a time, and both may be under way at once; images
// are made and end on any thread. Offsets are multiples of the granule. Addresses are those of the
// memory that objects live in, which a tier for a device's memory reads and writes by its own means:
// nobody but the tier looks at their bytes.
#pragma once

#include <cstdint>
#include <memory>

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

  // Bytes [offset, offset + bytes) of the object. When they throw (MEMORY, IO), what was there of it
  // stays in pieces of a granule, each as it was or as it was to be.
  virtual void write(image& to, std::uint64_t offset, const char* from, std::uint64_t bytes) = 0;
  virtual void read(const image& from, std::uint64_t offset, char* to, std::uint64_t bytes) = 0;

  virtual void fill(velo_swap_stats& stats) const noexcept = 0;  // bytes stored, checksums, how
};

}  // namespace velo::memory
