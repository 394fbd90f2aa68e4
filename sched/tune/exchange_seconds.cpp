// Links inside a node and between nodes work in parallel.
#include "sched/tune/exchange_seconds.hpp"

#include <algorithm>
#include <cmath>

namespace velo::sched::tune {
namespace {

double hops(std::int64_t size) {
  return std::ceil(std::log2(static_cast<double>(size)));
}

}  // namespace

// Between nodes every member in a node adds its own network link.
link link_of(const profile& of, std::int64_t size, std::int64_t stride) {
  if (size * stride <= of.per_node) return {of.intra_rate, of.intra_latency};
  const std::int64_t members =
      std::clamp<std::int64_t>(of.per_node / std::max<std::int64_t>(stride, 1), 1, size);
  return {std::min(of.intra_rate, of.inter_rate * static_cast<double>(members)), of.inter_latency};
}

double all_to_all_seconds(const profile& of, std::int64_t size, double bytes) {
  if (size == 1) return 0;
  const auto all = static_cast<double>(size);
  const auto in_node = static_cast<double>(std::min(size, of.per_node));
  const bool far = size > of.per_node;
  const double inside = bytes * (in_node - 1) / all / of.intra_rate;
  const double outside = bytes * (all - in_node) / all / of.inter_rate;
  return 2 * (std::max(inside, outside) + (far ? of.inter_latency : of.intra_latency));
}

double pairs_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes) {
  if (size * stride <= of.per_node) return bytes / of.intra_rate + of.intra_latency;
  const auto others = static_cast<double>(size - 1);
  const auto near = static_cast<double>(
      std::clamp<std::int64_t>(of.per_node / std::max<std::int64_t>(stride, 1), 1, size) - 1);
  const double inside = bytes * near / others / of.intra_rate;
  return std::max(inside, bytes * (others - near) / others / of.inter_rate) + of.inter_latency;
}

double collective_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes) {
  if (size == 1) return 0;
  const link over = link_of(of, size, stride);
  const auto all = static_cast<double>(size);
  return bytes * (all - 1) / all / over.rate + hops(size) * over.latency;
}

}  // namespace velo::sched::tune
