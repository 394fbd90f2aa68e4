// Windows over blocks, in batches of as many as a pass computes.
#include "examples/decoder/train/validation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/ranks/interrupt.hpp"

namespace decoder {
namespace {

// The windows of this copy's blocks, which all its ranks read.
std::vector<window> windows_of(const member& rank, std::size_t length, std::string_view text) {
  const auto copies = static_cast<std::size_t>(rank.copies());
  const std::size_t stride = length / 2;
  std::vector<window> all;
  for (std::size_t block = static_cast<std::size_t>(rank.copy()) * block_bytes; block < text.size();
       block += copies * block_bytes) {
    const std::string_view bytes = text.substr(block, block_bytes);
    std::size_t counted = 0;
    for (std::size_t begin = 0; counted < bytes.size(); begin += stride) {
      all.push_back({bytes.substr(begin, length), counted - begin});
      counted = begin + all.back().bytes.size();
    }
  }
  return all;
}

}  // namespace

std::optional<double> validation_bits_per_byte(
    const member& rank, std::int64_t length, std::string_view text, std::int64_t at_once,
    const std::function<double(const window*, std::int64_t)>& nats) {
  const std::vector<window> all = windows_of(rank, static_cast<std::size_t>(length), text);
  const auto count = static_cast<std::int64_t>(all.size());
  double sum = 0;
  // Ranks that have finished still ask with the others, so that all learn of an interrupt.
  const int rounds = rank.max(static_cast<int>((count + at_once - 1) / at_once));
  for (int round = 0; round < rounds; ++round) {
    if (rank.max(interrupt()) != 0) return std::nullopt;
    const std::int64_t first = round * at_once;
    if (first < count)
      sum += nats(&all[static_cast<std::size_t>(first)], std::min(at_once, count - first));
  }
  if (rank.max(interrupt()) != 0) return std::nullopt;
  return rank.sum(sum) / std::log(2.0) / static_cast<double>(text.size());
}

}  // namespace decoder
