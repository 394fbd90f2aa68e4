// The order of an epoch is a Feistel permutation over the next power of four, applied until the
// index falls inside the epoch: a bijection without a table.
#include "examples/decoder/data/windows.hpp"

#include "examples/decoder/random.hpp"

namespace decoder {
namespace {

std::uint64_t permuted(std::uint64_t index, std::uint64_t count, const random_stream& keys) {
  unsigned half = 1;
  while ((std::uint64_t{1} << (2 * half)) < count) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mixed(right ^ keys.bits(round)) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);  // fewer than four turns on average
  return index;
}

}  // namespace

windows::windows(std::int64_t text_bytes, std::int64_t window_bytes, std::int64_t seed)
    : window_(window_bytes), seed_(seed) {
  // The phase takes the place of one window, where there are several.
  const std::int64_t whole = text_bytes / window_bytes;
  per_epoch_ = whole > 1 ? whole - 1 : 1;
  slack_ = text_bytes - per_epoch_ * window_bytes;
}

std::int64_t windows::begin(std::int64_t number) const {
  const auto epoch = static_cast<std::uint64_t>(number / per_epoch_);
  const auto index = static_cast<std::uint64_t>(number % per_epoch_);
  const auto count = static_cast<std::uint64_t>(per_epoch_);
  const std::uint64_t phase =
      random_stream(seed_, purpose::phase).below(static_cast<std::uint64_t>(slack_) + 1, epoch);
  const std::uint64_t place = permuted(index, count, random_stream(seed_, purpose::windows, epoch));
  return static_cast<std::int64_t>(phase + place * static_cast<std::uint64_t>(window_));
}

}  // namespace decoder
