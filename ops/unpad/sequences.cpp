// Sums and checks of lengths; none of them is long work.
#include "ops/unpad/sequences.hpp"

#include <algorithm>

#include "core/failure.hpp"

namespace velo::ops {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 56;

[[noreturn]] void refuse_total() {
  core::fail(VELO_ERR_SHAPE, "args.seq_len", "lengths of less than 2^56 elements in all", "more");
}

}  // namespace

std::int64_t total_length(const velo_ints& lengths, std::int64_t most) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < lengths.count; ++i) {
    const std::int64_t length = lengths.data[i];
    if (length < 0 || length > most)
      core::fail(VELO_ERR_ARGUMENT, "args.seq_len", core::concat("lengths in [0, ", most, "]"),
                 core::concat(length, " in element ", i));
    total += length;
    if (total > most_elements) refuse_total();
  }
  return total;
}

std::int64_t total_scores(const velo_ints& lengths, std::int64_t most, std::int64_t heads) {
  total_length(lengths, std::min(most, std::int64_t{1} << 28));
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < lengths.count; ++i) {
    total += lengths.data[i] * lengths.data[i];
    if (total > most_elements / heads) refuse_total();
  }
  return total * heads;
}

void require_count(const velo_ints& lengths, std::int64_t count) {
  if (lengths.count != count)
    core::fail(VELO_ERR_ARGUMENT, "args.seq_len", core::concat(count, " lengths"),
               core::number(lengths.count));
}

}  // namespace velo::ops
