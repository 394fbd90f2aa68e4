// Row by row: numbers, products and merged outputs.
#include "sched/parallel/context/carried/remote_queries.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"

namespace velo::sched {
namespace {

// body(batch, head, place in `a`, place in `b`) for each row of a list that both have.
template <class Body>
void each_row(const rows_of_heads& which, const row_places& a, const row_places& b,
              core::execution& turn, const Body& body) {
  struct pair {
    std::int64_t a, b;
  };
  std::vector<pair> all;
  for (const row_run& one : a.runs(which.of))
    for (const row_run& other : b.runs({{one.row, one.row + one.count}}))
      for (std::int64_t i = 0; i < other.count; ++i)
        all.push_back({one.position + other.row - one.row + i, other.position + i});
  turn.threads.slices(which.batch * which.heads.size(), [&](std::int64_t task, int) {
    const std::int64_t batch = task / which.heads.size(),
                       head = which.heads.begin + task % which.heads.size();
    for (const pair& one : all) body(batch, head, one.a, one.b);
  });
}

template <class T>
float dot(const char* a, const char* b, std::int64_t count) {
  const auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(simd::to_float(x[i])) * static_cast<double>(simd::to_float(y[i]));
  return static_cast<float>(sum);
}

}  // namespace

void write_numbers(const remote_gradient& of, const rows_of_heads& which, core::execution& turn) {
  each_row(which, *of.to.places, of.queries, turn,
           [&](std::int64_t batch, std::int64_t head, std::int64_t to, std::int64_t own) {
             const std::int64_t row = of.queries.row(own), at = of.sums.place(batch, head, own);
             const char *dout = of.dout.at(batch, of.dout.places->place(row), head),
                        *out = of.out.at(batch, of.out.places->place(row), head);
             float numbers[numbers_of_gradient] = {of.sums.max[at], of.sums.sum[at], 0};
             ops::with_element_type(ops::dtype_of(of.dout.type), [&](auto t) {
               numbers[2] = dot<decltype(t)>(dout, out, of.dout.width);
             });
             std::memcpy(numbers_at(of.to, batch, to, head), numbers, sizeof numbers);
           });
}

void write_numbers(const row_numbers& from, const row_store& to, std::int64_t batch) {
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t head = to.heads.begin; head < to.heads.end; ++head)
      for (std::int64_t row = 0; row < to.places->size(); ++row) {
        const std::int64_t at = from.sums.place(b, head, row);
        const float numbers[numbers_of_part] = {from.sums.max[at], from.sums.sum[at]};
        std::memcpy(numbers_at(to, b, row, head), numbers, sizeof numbers);
      }
}

void read_numbers(const row_store& from, const row_numbers& to, std::int64_t batch) {
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t head = from.heads.begin; head < from.heads.end; ++head)
      for (std::int64_t row = 0; row < from.places->size(); ++row) {
        float numbers[numbers_of_gradient];
        std::memcpy(numbers, numbers_at(from, b, row, head), sizeof numbers);
        const std::int64_t at = to.sums.place(b, head, row);
        to.sums.max[at] = numbers[0], to.sums.sum[at] = numbers[1], to.dots[at] = numbers[2];
      }
}

void merge(const merged_outputs& of, const rows_of_heads& which, core::execution& turn) {
  each_row(which, *of.part.places, of.queries, turn,
           [&](std::int64_t batch, std::int64_t head, std::int64_t from, std::int64_t to) {
             float numbers[numbers_of_part];
             std::memcpy(numbers, numbers_at(of.part, batch, from, head), sizeof numbers);
             if (numbers[1] == 0) return;  // the part saw no key
             const std::int64_t at = of.sums.place(batch, head, to);
             float &max = of.sums.max[at], &sum = of.sums.sum[at];
             const float larger = std::max(max, numbers[0]);
             const double before = sum == 0 ? 0 : double{sum} * std::exp(double{max} - larger),
                          more = double{numbers[1]} * std::exp(double{numbers[0]} - larger),
                          all = before + more;
             const auto by = static_cast<float>(before / all),
                        part_by = static_cast<float>(more / all);
             auto* out = reinterpret_cast<float*>(of.out.at(batch, to, head));
             const auto* part = reinterpret_cast<const float*>(of.part.at(batch, from, head));
             for (std::int64_t i = 0; i < of.out.width; ++i)
               out[i] = out[i] * by + part[i] * part_by;
             max = larger, sum = static_cast<float>(all);
           });
}

}  // namespace velo::sched
