// Interpolation between measured times.
#include "comm/group/measured_times.hpp"

#include <algorithm>

namespace velo::comm {

namespace {

// The measured kind that moves the same bytes in the same pattern.
call_kind measured_like(call_kind kind) noexcept {
  if (!kind.is_collective()) return other_call::exchange;
  const collective_traits& traits = kind.traits();
  if (traits.in == layout::nothing) return collective::barrier;
  if (traits.reduces)
    return traits.in == layout::whole ? collective::all_reduce : collective::reduce_scatter;
  if (traits.root == root_role::gives) return collective::broadcast;
  return traits.in == layout::whole ? collective::all_gather : collective::all_to_all;
}

}  // namespace

std::size_t measured_times::row_of(call_kind kind) noexcept {
  const call_kind wanted = measured_like(kind);
  std::size_t row = 0;
  while (kinds[row] != wanted) ++row;
  return row;
}

void measured_times::settle() noexcept {
  for (auto& row : seconds_)
    for (std::size_t i = points - 1; i > 0; --i)
      if (row[i] >= 0) row[i - 1] = std::min(row[i - 1], row[i]);
}

double measured_times::predict(call_kind kind, std::int64_t bytes) const noexcept {
  const auto& row = seconds_[row_of(kind)];
  if (row[0] < 0 || bytes <= sizes[0] || kind == collective::barrier) return row[0];
  std::size_t next = 1;
  while (next + 1 < points && sizes[next] < bytes) ++next;
  const double width = static_cast<double>(sizes[next] - sizes[next - 1]);
  const double slope = (row[next] - row[next - 1]) / width;
  return row[next - 1] + slope * static_cast<double>(bytes - sizes[next - 1]);
}

double measured_times::latency(call_kind kind) const noexcept {
  return seconds_[row_of(kind)][0];
}

double measured_times::bandwidth(call_kind kind) const noexcept {
  const auto& row = seconds_[row_of(kind)];
  const double took = row[points - 1] - row[points - 2];
  return took > 0 ? static_cast<double>(sizes[points - 1] - sizes[points - 2]) / took : 0;
}

std::int64_t whole_bytes(const operation& what, int ranks) noexcept {
  const collective_traits& traits = what.traits();
  const std::int64_t even = what.count * ranks;
  if (has_root_blocks(traits))  // uneven blocks are treated as if all had this rank's size
    return even * std::max(what.in_size(), what.out_size());
  const auto sum_of = [even](const blocks& all) {
    std::int64_t sum = 0;
    for (const block& one : all) sum += one.count;
    return all.empty() ? even : sum;
  };
  if (traits.in == layout::blocks) return sum_of(what.in_blocks) * what.in_size();
  if (traits.out == layout::blocks) return sum_of(what.out_blocks) * what.in_size();
  return what.bytes;
}

}  // namespace velo::comm
