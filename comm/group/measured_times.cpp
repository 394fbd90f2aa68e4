// Lines between what was measured.
#include "comm/group/measured_times.hpp"

#include <algorithm>

namespace velo::comm {

// What was not measured itself takes what moves the same bytes in the same way.
std::size_t measured_times::row_of(collective kind) noexcept {
  if (kind == collective::reduce) kind = collective::all_reduce;
  if (kind == collective::gather) kind = collective::all_gather;
  if (kind == collective::scatter) kind = collective::broadcast;
  if (kind == collective::send || kind == collective::receive) kind = collective::exchange;
  for (std::size_t row = 0; row < kind_count; ++row)
    if (kinds[row] == kind) return row;
  return 0;
}

void measured_times::settle() noexcept {
  for (auto& row : seconds_)
    for (std::size_t i = points - 1; i > 0; --i)
      if (row[i] >= 0) row[i - 1] = std::min(row[i - 1], row[i]);
}

double measured_times::predict(collective kind, std::int64_t bytes) const noexcept {
  const auto& row = seconds_[row_of(kind)];
  if (row[0] < 0 || bytes <= sizes[0] || kind == collective::barrier) return row[0];
  std::size_t next = 1;
  while (next + 1 < points && sizes[next] < bytes) ++next;
  const double width = static_cast<double>(sizes[next] - sizes[next - 1]);
  const double slope = (row[next] - row[next - 1]) / width;
  return row[next - 1] + slope * static_cast<double>(bytes - sizes[next - 1]);
}

double measured_times::latency(collective kind) const noexcept {
  return seconds_[row_of(kind)][0];
}

double measured_times::bandwidth(collective kind) const noexcept {
  const auto& row = seconds_[row_of(kind)];
  const double took = row[points - 1] - row[points - 2];
  return took > 0 ? static_cast<double>(sizes[points - 1] - sizes[points - 2]) / took : 0;
}

std::int64_t whole_bytes(const operation& what, int ranks) noexcept {
  const auto of = [](const std::vector<part>& parts) {
    std::int64_t all = 0;
    for (const part& one : parts) all += one.count;
    return all;
  };
  switch (what.terms.kind) {
    case collective::all_gather:
      return (what.out_parts.empty() ? what.count * ranks : of(what.out_parts)) * what.in_size();
    case collective::reduce_scatter:
    case collective::all_to_all:
      return (what.in_parts.empty() ? what.count * ranks : of(what.in_parts)) * what.in_size();
    case collective::gather:
    case collective::scatter:  // of uneven parts as if all had this rank's
      return what.count * ranks * std::max(what.in_size(), what.out_size());
    default:
      return what.bytes();
  }
}

}  // namespace velo::comm
