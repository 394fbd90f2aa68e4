// Sums over the gathers and scatters of either pass.
#include "sched/tune/tensor_exchange.hpp"

#include "sched/tune/exchange_seconds.hpp"

namespace velo::sched::tune {
namespace {

struct moved {
  double bytes, seconds;
};

moved operator+(const moved& a, const moved& b) {
  return {a.bytes + b.bytes, a.seconds + b.seconds};
}

// A gather, or the scatter of a sum, of `bytes` of all ranks.
moved over(const profile& of, std::int64_t ranks, std::int64_t stride, double bytes) {
  const auto all = static_cast<double>(ranks);
  return {bytes * (all - 1) / all, collective_seconds(of, ranks, stride, bytes)};
}

}  // namespace

tensor_use& tensor_use::operator+=(const tensor_use& more) {
  forward_bytes += more.forward_bytes;
  gradient_bytes += more.gradient_bytes;
  forward_seconds += more.forward_seconds;
  gradient_seconds += more.gradient_seconds;
  return *this;
}

tensor_use exchanged_both_ways(const profile& of, const cut_block& block) {
  constexpr double sum_bytes = 4;  // of a row
  const moved stream = over(of, block.x, 1, block.column_bytes * block.hidden),
              first = over(of, block.y, block.x, block.column_bytes * block.first),
              last = over(of, block.y, block.x, block.column_bytes * block.last),
              row_sums = over(of, block.y, block.x, block.stream_rows * sum_bytes);
  const moved there = stream + first + last + stream + row_sums + row_sums;
  const moved back = there + stream + last;
  return {there.bytes, back.bytes, there.seconds, back.seconds};
}

}  // namespace velo::sched::tune
