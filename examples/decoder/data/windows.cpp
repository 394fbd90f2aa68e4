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

// The grid of an epoch: the phase takes the place of one window, where there are several.
std::int64_t windows_in(std::int64_t text_bytes, std::int64_t window_bytes) {
  const std::int64_t whole = text_bytes / window_bytes;
  return whole > 1 ? whole - 1 : 1;
}

}  // namespace

std::int64_t epoch_order::at(std::int64_t number) const {
  const auto epoch = static_cast<std::uint64_t>(number / count_);
  const auto index = static_cast<std::uint64_t>(number % count_);
  return static_cast<std::int64_t>(permuted(index, static_cast<std::uint64_t>(count_),
                                            random_stream(seed_, purpose::windows, epoch)));
}

windows::windows(std::int64_t text_bytes, std::int64_t window_bytes, std::int64_t seed)
    : window_(window_bytes),
      seed_(seed),
      order_(windows_in(text_bytes, window_bytes), seed),
      slack_(text_bytes - order_.count() * window_bytes) {}

std::int64_t windows::begin(std::int64_t number) const {
  const auto epoch = static_cast<std::uint64_t>(number / order_.count());
  const std::uint64_t phase =
      random_stream(seed_, purpose::phase).below(static_cast<std::uint64_t>(slack_) + 1, epoch);
  return static_cast<std::int64_t>(phase) + order_.at(number) * window_;
}

}  // namespace decoder
