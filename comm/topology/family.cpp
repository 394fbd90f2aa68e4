// Conversions between ranks and mixed-radix digits. A part has the positions first, first + inner,
// .. of the whole group. Parts are counted with the inner index fastest.
#include "comm/topology/family.hpp"

#include <algorithm>

#include "core/round_up.hpp"

namespace velo::comm {

std::int64_t digits::size() const {
  std::int64_t product = 1;
  for (const digit& d : *this) product *= d.size;
  return product;
}

std::int64_t digits::rank_of(std::int64_t number) const {
  std::int64_t rank = 0;
  for (const digit& d : *this) {
    rank += number % d.size * d.step * d.stride;
    number /= d.size;
  }
  return rank;
}

std::int64_t digits::number_of(std::int64_t rank) const {
  std::int64_t number = 0, unit = 1;
  for (const digit& d : *this) {
    const std::int64_t value = rank / d.stride % d.extent;
    if (value % d.step != 0 || value / d.step >= d.size) return -1;
    number += value / d.step * unit;
    unit *= d.size;
  }
  return number;
}

std::int64_t family::parts() const {
  return length == 0 ? 1 : inner * core::ceil_div(whole(), inner * length);
}

std::int64_t family::groups() const {
  return others.size() * parts();
}

std::int64_t family::size() const {
  return length == 0 ? whole() : std::min(length, whole());
}

std::int64_t family::size_of(std::int64_t group) const {
  if (length == 0) return whole();
  const std::int64_t outer = group % parts() / inner;
  return std::min(length, (whole() - outer * inner * length) / inner);
}

std::int64_t family::rank_at(std::int64_t group, std::int64_t position) const {
  if (length == 0) return others.rank_of(group) + members.rank_of(position);
  const std::int64_t part = group % parts();
  const std::int64_t first = part % inner + part / inner * inner * length;
  return others.rank_of(group / parts()) + members.rank_of(first + position * inner);
}

membership family::find(std::int64_t rank) const {
  const std::int64_t at = members.number_of(rank);
  if (at < 0) return {};
  const std::int64_t group = others.number_of(rank);
  if (length == 0) return {group, at};
  const std::int64_t part = at % inner + at / (inner * length) * inner;
  return {group * parts() + part, at / inner % length};
}

}  // namespace velo::comm
