// Growing and merging chunks. The 64 bytes behind a chunk's usable part hold the link to the
// previous chunk.
#include "core/host/arena.hpp"

#include <algorithm>
#include <new>

#include "core/round_up.hpp"

namespace velo::core {
namespace {

constexpr std::size_t smallest = std::size_t{64} << 10;
constexpr std::size_t trailer = 64;
constexpr std::size_t huge = std::size_t{2} << 20;

}  // namespace

struct arena::chunk {
  chunk* before;
  char* memory;
  std::size_t bytes;  // usable
};

void* arena::grow(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4)
    fail(VELO_ERR_MEMORY, "", "scratch of a size that fits in 64 bits", "an overflow");
  const std::size_t rounded = (bytes + 63) & ~std::size_t{63};
  // Doubling keeps the number of chunks logarithmic. wanted_ makes the merged chunk large enough at
  // once.
  const std::size_t ahead = std::max({smallest, wanted_, retired_bytes_ + capacity_});
  // The size is in whole huge pages, so that none is mapped for a few bytes.
  const std::size_t least = std::max(rounded, ahead) + trailer;
  const std::size_t unit = least >= huge ? huge : trailer;
  const std::size_t size = round_up(least, unit) - trailer;
  char* memory = static_cast<char*>(source_.take(size + trailer));
  if (memory_ != nullptr) {
    retired_ = new (memory_ + capacity_) chunk{retired_, memory_, capacity_};
    earlier_ += used_;
    retired_bytes_ += capacity_;
  }
  memory_ = memory;
  capacity_ = size;
  used_ = rounded;
  return memory_;
}

void arena::forget() noexcept {
  note_peak();
  used_ = 0;
  if (retired_ != nullptr) release();
}

void arena::release() noexcept {
  while (retired_ != nullptr) {
    const chunk last = *retired_;
    source_.give(last.memory, last.bytes + trailer);
    retired_ = last.before;
  }
  source_.give(memory_, capacity_ + trailer);
  memory_ = nullptr;
  capacity_ = used_ = earlier_ = retired_bytes_ = 0;
}

}  // namespace velo::core
