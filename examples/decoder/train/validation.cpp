// Windows over blocks or documents, in batches of as many as a pass computes.
#include "examples/decoder/train/validation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "examples/decoder/ranks/interrupt.hpp"

namespace decoder {
namespace {

// The ends of the stretches of text that are read by themselves.
std::vector<std::size_t> stretches_of(const corpus& text) {
  if (!text.validation_ends.empty()) return text.validation_ends;
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.validation.size(); at += block_bytes)
    ends.push_back(std::min(at + block_bytes, text.validation.size()));
  return ends;
}

// The windows of this copy's stretches, which all its ranks read.
packing windows_of(const member& rank, std::size_t length, const corpus& text) {
  const auto copies = static_cast<std::size_t>(rank.copies());
  const std::size_t stride = length / 2;
  const std::vector<std::size_t> ends = stretches_of(text);
  std::vector<piece> all;
  for (auto i = static_cast<std::size_t>(rank.copy()); i < ends.size(); i += copies) {
    const std::size_t first = i == 0 ? 0 : ends[i - 1];
    const std::string_view bytes = std::string_view(text.validation).substr(first, ends[i] - first);
    std::size_t counted = 0;
    for (std::size_t begin = 0; counted < bytes.size(); begin += stride) {
      all.push_back({bytes.substr(begin, length), counted - begin});
      counted = begin + all.back().bytes.size();
    }
  }
  if (!text.validation_ends.empty()) return pack(all, static_cast<std::int64_t>(length));
  packing alone{std::move(all), {}};
  for (std::size_t i = 0; i < alone.pieces.size(); ++i) alone.ends.push_back(i + 1);
  return alone;
}

}  // namespace

std::optional<double> validation_bits_per_byte(
    const member& rank, std::int64_t length, const corpus& text, std::int64_t at_once,
    const std::function<double(const window*, std::int64_t)>& nats) {
  const packing packed = windows_of(rank, static_cast<std::size_t>(length), text);
  std::vector<window> all;
  for (std::int64_t i = 0; i < packed.windows(); ++i) all.push_back(packed.at(i));
  const std::int64_t count = packed.windows();
  double sum = 0;
  // Ranks that have finished still ask with the others, so that all learn of an interrupt.
  const std::int64_t rounds = rank.max((count + at_once - 1) / at_once);
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (rank.max(interrupt()) != 0) return std::nullopt;
    const std::int64_t first = round * at_once;
    const std::int64_t now = std::clamp<std::int64_t>(count - first, 0, at_once);
    if (now > 0 || rank.expert_ranks().ranks > 1)  // others wait for this rank's experts
      sum += nats(all.data() + std::min(first, count), now);
  }
  if (rank.max(interrupt()) != 0) return std::nullopt;
  return rank.sum(sum) / std::log(2.0) / static_cast<double>(text.validation.size());
}

}  // namespace decoder
