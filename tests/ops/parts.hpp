// Parts of a whole tensor, for operators whose calls say where their tensors lie in a whole.
#pragma once

#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

using extents = std::vector<std::int64_t>;

// A list of numbers as a field of a call. It lives as long as the numbers.
inline velo_ints list_of(const extents& numbers) {
  return {numbers.data(), static_cast<std::int64_t>(numbers.size())};
}

// A block of a whole tensor: where it begins, its sizes, and those of the whole.
struct part {
  extents origin, shape, whole;

  // body(place in the part, place in the whole) for each element.
  template <class Body>
  void each(const Body& body) const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, place = 0, stride = 1;
      for (std::size_t d = shape.size(); d-- > 0; stride *= whole[d]) {
        place += stride * (origin[d] + rest % shape[d]);
        rest /= shape[d];
      }
      body(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
    }
  }
  // Without the last dimension.
  part rows() const {
    const auto shorter = [](extents x) { return x.pop_back(), x; };
    return {shorter(origin), shorter(shape), shorter(whole)};
  }
  // Of the last dimension alone.
  part columns() const { return {{origin.back()}, {shape.back()}, {whole.back()}}; }

  template <class T>
  void take(array<T>& to, const array<T>& from) const {
    each([&](std::size_t mine, std::size_t theirs) { to[mine] = from.data()[theirs]; });
  }
  // The same bits in the part as there in the whole.
  template <class T>
  bool agrees(const array<T>& mine, const array<T>& all) const {
    bool same = true;
    each([&](std::size_t i, std::size_t place) {
      const void *here = mine.data() + i, *there = all.data() + place;
      same = same && std::memcmp(here, there, sizeof(T)) == 0;
    });
    return same && mine.intact();
  }
};

// Uneven parts of a whole, cut along a dimension.
inline std::vector<part> parts_along(const extents& whole, std::size_t dimension, int count) {
  std::vector<part> all;
  const std::int64_t size = whole[dimension];
  std::int64_t begin = 0;
  for (int i = 1; i <= count; ++i) {
    const std::int64_t end = size * i * (i + 1) / (count * (count + 1));
    all.push_back({extents(whole.size(), 0), whole, whole});
    all.back().origin[dimension] = begin, all.back().shape[dimension] = end - begin;
    begin = end;
  }
  return all;
}

// The whole, cut along each dimension into one to three parts, and a block within it.
inline std::vector<part> parts_of(const extents& whole) {
  std::vector<part> all;
  for (std::size_t d = 0; d < whole.size(); ++d)
    for (const int count : {1, 2, 3})
      for (part& one : parts_along(whole, d, count)) all.push_back(std::move(one));
  all.push_back({extents(whole.size(), 1), whole, whole});
  for (std::int64_t& size : all.back().shape) size = std::max<std::int64_t>(size - 2, 0);
  return all;
}

// Tries places that do not fit on an operator whose tensor is [3, 4].
template <class Args, class T>
void check_places(session& s, velo_status (*op)(velo_stream, const Args*), const Args& valid,
                  const array<T>& output) {
  const extents three = {0, 0, 0}, two = {0, 0}, none = {0, -1}, down = {2, 0}, right = {0, 5},
                all = {4, 8}, narrow = {4, 3};
  const velo_ints longer = list_of(three), origin = list_of(two), before = list_of(none),
                  below = list_of(down), beside = list_of(right), whole = list_of(all),
                  small = list_of(narrow);
  const auto place = [](const velo_ints& from, const velo_ints& in) {
    return [&from, &in](Args& a) { a.dropout_origin = &from, a.dropout_extents = &in; };
  };
  check_refusals(s, op, valid, output,
                 {{[&](Args& a) { a.dropout_origin = &origin; }, VELO_ERR_NULL,
                   "args.dropout_extents", "2 values, beside those of the other list", "NULL"},
                  {[&](Args& a) { a.dropout_extents = &whole; }, VELO_ERR_NULL,
                   "args.dropout_origin", "2 values, beside those of the other list", "NULL"},
                  {place(longer, whole), VELO_ERR_ARGUMENT, "args.dropout_origin",
                   "2 values: one for each dimension of the tensor", "3"},
                  {place(origin, longer), VELO_ERR_ARGUMENT, "args.dropout_extents",
                   "2 values: one for each dimension of the tensor", "3"},
                  {place(before, whole), VELO_ERR_ARGUMENT, "args.dropout_origin",
                   "a block of 4 within 8 in dimension 1", "-1"},
                  {place(below, whole), VELO_ERR_ARGUMENT, "args.dropout_origin",
                   "a block of 3 within 4 in dimension 0", "2"},
                  {place(beside, whole), VELO_ERR_ARGUMENT, "args.dropout_origin",
                   "a block of 4 within 8 in dimension 1", "5"},
                  {place(origin, small), VELO_ERR_ARGUMENT, "args.dropout_origin",
                   "a block of 4 within 3 in dimension 1", "0"}});
}

}  // namespace velo::testing
