// Finds rows in stores, and copies or adds them run by run.
#include "sched/parallel/context/carried/row_store.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/attention/engine/attention_plan.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"

namespace velo::sched {
namespace {

// Rows at some positions of two stores.
struct paired_run {
  std::int64_t from, to, count;
};

std::vector<paired_run> pair_up(const row_places& from, const row_places& to, const rows& of) {
  std::vector<paired_run> all;
  for (const row_run& source : from.runs(of))
    for (const row_run& target : to.runs({{source.row, source.row + source.count}}))
      all.push_back({source.position + target.row - source.row, target.position, target.count});
  return all;
}

// A matrix of rows, `from_step` and `to_step` elements apart.
struct matrix_move {
  const char* from;
  char* to;
  std::int64_t rows_of_it, columns, from_step, to_step;
};

// Moves rows of one type, or float32 to another type, or adds float32 to it.
class row_mover {
 public:
  row_mover(const row_store& from, const row_store& to, bool adds, core::isa isa)
      : is_copy_(from.type == to.type && !adds),
        bytes_(ops::element_bytes(to.type)),
        type_(to.type),
        adds_(adds),
        kernels_(ops::attention_kernels_of(isa)) {}

  void operator()(const matrix_move& m) const {
    if (is_copy_) return copy(m);
    if (kernels_.plain())
      return ops::with_element_type(ops::dtype_of(type_),
                                    [&](auto element) { plainly<decltype(element)>(m); });
    const auto* from = reinterpret_cast<const float*>(m.from);
    const ops::attention_steps& steps = type_ == ops::element_type::f32    ? kernels_.floats
                                        : type_ == ops::element_type::bf16 ? kernels_.wide_bf16
                                                                           : kernels_.wide_f16;
    steps.write_rows(from, m.from_step, static_cast<int>(m.rows_of_it), static_cast<int>(m.columns),
                     1.0f, m.to, m.to_step, adds_);
  }

 private:
  void copy(const matrix_move& m) const {
    for (std::int64_t i = 0; i < m.rows_of_it; ++i)
      std::memcpy(m.to + i * m.to_step * bytes_, m.from + i * m.from_step * bytes_,
                  static_cast<std::size_t>(m.columns * bytes_));
  }
  template <class T>
  void plainly(const matrix_move& m) const {
    const auto* from = reinterpret_cast<const float*>(m.from);
    auto* to = reinterpret_cast<T*>(m.to);
    for (std::int64_t i = 0; i < m.rows_of_it; ++i)
      for (std::int64_t j = 0; j < m.columns; ++j) {
        T& x = to[i * m.to_step + j];
        simd::assign(x, from[i * m.from_step + j] + (adds_ ? simd::to_float(x) : 0.0f));
      }
  }

  const bool is_copy_;
  const std::int64_t bytes_;
  const ops::element_type type_;
  const bool adds_;
  const ops::attention_kernels& kernels_;
};

// Rows that a thread moves at once: some 64 KB.
std::int64_t rows_of_task(std::int64_t row_bytes) {
  return std::max<std::int64_t>((64 << 10) / std::max<std::int64_t>(row_bytes, 1), 1);
}

void move_rows(const row_store& from, const row_store& to, const rows_of_heads& which, bool adds,
               core::execution& turn) {
  const row_mover move(from, to, adds, turn.isa);
  const span heads{std::max({which.heads.begin, from.heads.begin, to.heads.begin}),
                   std::min({which.heads.end, from.heads.end, to.heads.end})};
  if (heads.empty()) return;
  const bool side_by_side = from.strides.head == from.width && to.strides.head == to.width;
  const std::int64_t at_once = side_by_side ? heads.size() : 1;
  const std::int64_t some = rows_of_task(heads.size() * to.width * ops::element_bytes(to.type));
  for (const paired_run& run : pair_up(*from.places, *to.places, which.of)) {
    const std::int64_t tasks = core::ceil_div(run.count, some);
    turn.threads.slices(which.batch * tasks, [&](std::int64_t task, int) {
      const std::int64_t batch = task / tasks, first = task % tasks * some;
      const std::int64_t count = std::min(some, run.count - first);
      for (std::int64_t head = heads.begin; head < heads.end; head += at_once)
        move({from.at(batch, run.from + first, head), to.at(batch, run.to + first, head), count,
              at_once * to.width, from.strides.token, to.strides.token});
    });
  }
}

}  // namespace

row_places::row_places(rows list) : list_(std::move(list)) {
  std::int64_t start = 0;
  for (const span& s : list_) {
    starts_.push_back(start);
    start += s.size();
  }
}

std::size_t row_places::first_behind(std::int64_t row) const {
  const auto found = std::upper_bound(list_.begin(), list_.end(), row,
                                      [](std::int64_t r, const span& s) { return r < s.end; });
  return static_cast<std::size_t>(found - list_.begin());
}

std::int64_t row_places::row(std::int64_t place) const {
  const auto start = std::upper_bound(starts_.begin(), starts_.end(), place) - 1;
  return list_[static_cast<std::size_t>(start - starts_.begin())].begin + place - *start;
}

std::int64_t row_places::place(std::int64_t row) const {
  const std::size_t span = first_behind(row);
  return starts_[span] + row - list_[span].begin;
}

std::vector<row_run> row_places::runs(const rows& of) const {
  std::vector<row_run> all;
  for (const span& wanted : of)
    for (std::size_t i = first_behind(wanted.begin);
         i < list_.size() && list_[i].begin < wanted.end; ++i) {
      const std::int64_t begin = std::max(wanted.begin, list_[i].begin);
      const std::int64_t end = std::min(wanted.end, list_[i].end);
      if (begin < end) all.push_back({starts_[i] + begin - list_[i].begin, end - begin, begin});
    }
  return all;
}

bool row_places::has(const rows& of) const {
  for (const span& wanted : of) {
    if (wanted.empty()) continue;
    const std::size_t i = first_behind(wanted.begin);
    if (i == list_.size() || wanted.begin < list_[i].begin || list_[i].end < wanted.end)
      return false;
  }
  return true;
}

bool row_places::has_some(const rows& of) const {
  for (const span& wanted : of) {
    const std::size_t i = first_behind(wanted.begin);
    if (i < list_.size() && list_[i].begin < wanted.end && !wanted.empty()) return true;
  }
  return false;
}

bool row_store::is_exactly(const rows& of, span some, std::int64_t batch) const {
  const row_store dense = dense_store(data, *places, heads, width, type);
  const bool is_dense = (batch <= 1 || strides.batch == dense.strides.batch) &&
                        (places->size() <= 1 || strides.token == dense.strides.token) &&
                        (heads.size() <= 1 || strides.head == dense.strides.head);
  return is_dense && heads == some && places->size() == size_of(of) && places->has(of);
}

row_store without_numbers(const row_store& all, std::int64_t numbers) {
  row_store made = all;
  made.width -= elements_of(numbers, all.type);
  return made;
}

row_store dense_store(void* data, const row_places& places, span heads, std::int64_t width,
                      ops::element_type type) {
  const std::int64_t token = heads.size() * width;
  return {
      static_cast<char*>(data), &places, heads, {places.size() * token, token, width}, width, type};
}

std::size_t dense_bytes(std::int64_t batch, std::int64_t rows_of_it, span heads, std::int64_t width,
                        ops::element_type type) {
  return static_cast<std::size_t>(batch * rows_of_it * heads.size() * width *
                                  ops::element_bytes(type));
}

void copy_rows(const row_store& from, const row_store& to, const rows_of_heads& which,
               core::execution& turn) {
  move_rows(from, to, which, false, turn);
}

void add_rows(const row_store& from, const row_store& to, const rows_of_heads& which,
              core::execution& turn) {
  move_rows(from, to, which, true, turn);
}

void clear(const row_store& to, span positions, std::int64_t batch, core::execution& turn) {
  if (positions.empty()) return;
  const std::int64_t row_bytes = to.width * ops::element_bytes(to.type);
  const bool side_by_side = to.strides.head == to.width;
  const std::int64_t at_once = side_by_side ? to.heads.size() : 1;
  const std::int64_t some = rows_of_task(to.heads.size() * row_bytes);
  const std::int64_t tasks = core::ceil_div(positions.size(), some);
  turn.threads.slices(batch * tasks, [&](std::int64_t task, int) {
    const std::int64_t first = positions.begin + task % tasks * some;
    const std::int64_t last = std::min(first + some, positions.end);
    for (std::int64_t row = first; row < last; ++row)
      for (std::int64_t head = to.heads.begin; head < to.heads.end; head += at_once)
        std::memset(to.at(task / tasks, row, head), 0,
                    static_cast<std::size_t>(at_once * row_bytes));
  });
}

}  // namespace velo::sched
