// The assembly of rows and heads; see the header.
#include "sched/parallel/context/heads/exchanged_heads.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"

namespace velo::sched {
namespace {

// body(first row, last row) in tasks of some 64 KB.
template <class Body>
void each_rows(std::int64_t rows, std::int64_t row_bytes, core::execution& turn, const Body& body) {
  constexpr std::int64_t task_bytes = 64 << 10;
  const std::int64_t some =
      std::max<std::int64_t>(task_bytes / std::max<std::int64_t>(row_bytes, 1), 1);
  turn.threads.slices(core::ceil_div(rows, some), [&](std::int64_t task, int) {
    body(task * some, std::min(rows, (task + 1) * some));
  });
}

// The end of the run of heads from `head` on whose ranks are the same.
std::int64_t end_of_run(const head_cut& cut, std::int64_t head) {
  std::int64_t end = cut.all_heads;
  for (int r = 0; r < cut.ranks; ++r) {
    const span of = cut.heads_of(r);
    if (of.begin > head) end = std::min(end, of.begin);
    if (of.end > head) end = std::min(end, of.end);
  }
  return end;
}

bool has(const span& heads, std::int64_t head) {
  return heads.begin <= head && head < heads.end;
}

// Sums a row of the run, some elements at a time, rank after rank.
template <class T>
void sum_run(const head_cut& cut, const head_rows* parts, std::int64_t row, span run,
             std::int64_t elements, char* to) {
  constexpr std::int64_t some = 256;
  const std::int64_t count = (run.end - run.begin) * elements;
  for (std::int64_t begin = 0; begin < count; begin += some) {
    const std::int64_t n = std::min(some, count - begin);
    float sums[some] = {};
    for (int r = 0; r < cut.ranks; ++r) {
      const span of = cut.heads_of(r);
      if (!has(of, run.begin)) continue;
      const T* x = reinterpret_cast<const T*>(parts[r].first + row * parts[r].row_bytes) +
                   (run.begin - of.begin) * elements + begin;
      for (std::int64_t i = 0; i < n; ++i) sums[i] += simd::to_float(x[i]);
    }
    for (std::int64_t i = 0; i < n; ++i) simd::assign(reinterpret_cast<T*>(to)[begin + i], sums[i]);
  }
}

// A run of heads of rows [first, last), from the one rank that has it or as a sum.
void join_run(const head_cut& cut, const head_rows* parts, span run, std::int64_t first,
              std::int64_t last, const head_size& each, char* to) {
  int owners = 0, owner = 0;
  for (int r = cut.ranks - 1; r >= 0; --r)
    if (has(cut.heads_of(r), run.begin)) ++owners, owner = r;
  const std::int64_t row_bytes = cut.all_heads * each.bytes;
  const auto bytes = static_cast<std::size_t>((run.end - run.begin) * each.bytes);
  const std::int64_t within = (run.begin - cut.heads_of(owner).begin) * each.bytes;
  for (std::int64_t row = first; row < last; ++row) {
    char* at = to + row * row_bytes + run.begin * each.bytes;
    if (owners == 1) {
      std::memcpy(at, parts[owner].first + row * parts[owner].row_bytes + within, bytes);
      continue;
    }
    ops::with_element_type(ops::dtype_of(each.type), [&](auto element) {
      sum_run<decltype(element)>(cut, parts, row, run, each.elements, at);
    });
  }
}

}  // namespace

std::int64_t head_cut::first_row(int rank) const {
  std::int64_t first = 0;
  for (int r = 0; r < rank; ++r) first += rows_of(r);
  return first;
}

std::int64_t head_cut::heads_together() const {
  std::int64_t all = 0;
  for (int r = 0; r < ranks; ++r) all += heads_of(r).end - heads_of(r).begin;
  return all;
}

void copy_heads(const head_rows& from, span heads, std::int64_t rows, const head_size& each,
                char* to, std::int64_t to_row_bytes, core::execution& turn) {
  const std::int64_t heads_bytes = (heads.end - heads.begin) * each.bytes;
  if (heads_bytes == 0) return;
  const bool together = from.row_bytes == to_row_bytes && heads_bytes == to_row_bytes;
  each_rows(rows, to_row_bytes, turn, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t runs = together ? 1 : last - first;
    const auto bytes =
        static_cast<std::size_t>(together ? heads_bytes * (last - first) : heads_bytes);
    const char* x = from.first + first * from.row_bytes + heads.begin * each.bytes;
    char* y = to + first * to_row_bytes;
    for (std::int64_t i = 0; i < runs; ++i, x += from.row_bytes, y += to_row_bytes)
      std::memcpy(y, x, bytes);
  });
}

void pack_heads(const head_rows& from, span heads, std::int64_t rows, const head_size& each,
                char* to, core::execution& turn) {
  constexpr std::int64_t block_bytes = 16 << 10;
  const std::int64_t bytes = (heads.end - heads.begin) * each.bytes;
  if (bytes == from.row_bytes || bytes > block_bytes / 2)
    return copy_heads(from, heads, rows, each, to, bytes, turn);
  if (bytes == 0) return;
  each_rows(rows, bytes, turn, [&](std::int64_t first, std::int64_t last) {
    alignas(64) char block[block_bytes];
    const char* x = from.first + first * from.row_bytes + heads.begin * each.bytes;
    for (std::int64_t row = first, next = 0; row < last; row = next) {
      next = std::min(last, row + block_bytes / bytes);
      for (std::int64_t i = 0; i < next - row; ++i, x += from.row_bytes)
        std::memcpy(block + i * bytes, x, static_cast<std::size_t>(bytes));
      std::memcpy(to + row * bytes, block, static_cast<std::size_t>((next - row) * bytes));
    }
  });
}

void join_heads(const head_cut& cut, const head_rows* parts, std::int64_t rows,
                const head_size& each, char* to, core::execution& turn) {
  each_rows(rows, cut.all_heads * each.bytes, turn, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t head = 0, end = 0; head < cut.all_heads; head = end) {
      end = end_of_run(cut, head);
      join_run(cut, parts, {head, end}, first, last, each, to);
    }
  });
}

}  // namespace velo::sched
