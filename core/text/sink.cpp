// Writes a text into a caller's buffer.
#include "core/text/sink.hpp"

#include <algorithm>

namespace velo::core {

void buffer_sink::write(const char* bytes, std::size_t count) {
  if (written_ < capacity_)
    std::memcpy(to_ + written_, bytes, std::min<std::uint64_t>(count, capacity_ - written_));
  written_ += count;
}

std::uint64_t buffer_sink::finish() {
  empty();
  if (capacity_ > 0) to_[std::min(written_, capacity_ - 1)] = 0;
  return written_ + 1;
}

}  // namespace velo::core
