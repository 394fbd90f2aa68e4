// add (two reads, one write), cast (a row is named by its source type: f32 to bf16 or back, 6 bytes
// an element), dropout and its gradient (one read, one write), accumulate into float32 (two reads,
// one write), reduce_max_abs of rows (one read).
#include <algorithm>
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

void fill_add(experiment& e, dtype type, const plane& p) {
  tensor& a = e.random(type, {p.rows, p.columns});
  tensor& b = e.random(type, {p.rows, p.columns});
  tensor& y = e.zeros(type, {p.rows, p.columns});
  tensor& theirs = e.zeros(type, {p.rows, p.columns});
  e.velo("add", {{"a", a.view()}, {"b", b.view()}, {"y", y.view()}});
  e.call("oneDNN", onednn::add(type, p.rows, p.columns, a.data(), b.data(), theirs.data()));
  e.check([&a, &b, &y] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) { return a.at(i) + b.at(i); });
  });
}

void fill_accumulate(experiment& e, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& y = e.zeros(dtype::f32, {p.rows, p.columns});
  e.velo("accumulate", {{"x", x.view()}, {"y", y.view()}, {"alpha", 0.0}});
  e.check([&y] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); }, [](std::int64_t) { return 0.0; });
  });
}

void fill_max_abs(experiment& e, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& y = e.zeros(dtype::f32, {p.rows});
  e.velo("reduce_max_abs", {{"x", x.view()}, {"y", y.view()}, {"over", "rows"}});
  e.check([&x, &y, n = p.columns] {
    return sampled_error(
        4, [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          double most = 0;
          for (std::int64_t k = 0; k < n; ++k) most = std::max(most, std::abs(x.at(i * n + k)));
          return most;
        });
  });
}

void fill_cast(experiment& e, dtype type, const plane& p) {
  const dtype other = type == dtype::f32 ? dtype::bf16 : dtype::f32;
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& y = e.zeros(other, {p.rows, p.columns});
  tensor& theirs = e.zeros(other, {p.rows, p.columns});
  e.velo(
      "cast",
      {{"x", x.view()}, {"y", y.view()}, {"dtype", other == dtype::f32 ? "float32" : "bfloat16"}});
  e.call("oneDNN", onednn::cast(type, other, p.rows, p.columns, x.data(), theirs.data()));
  e.check(
      [&x, &y] {
        return sampled_error(
            y.count(), [&](std::int64_t i) { return y.at(i); },
            [&](std::int64_t i) { return x.at(i); });
      },
      default_tolerance(dtype::bf16));
}

constexpr double drop_share = 0.1;

// The inputs are ones, so that outputs show the mask.
void fill_dropout(experiment& e, dtype type, const plane& p, bool gradient) {
  tensor& x = e.zeros(type, {p.rows, p.columns});
  tensor& y = e.zeros(type, {p.rows, p.columns});
  for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, 1);
  e.velo(gradient ? "dropout_backward" : "dropout", {{gradient ? "dy" : "x", x.view()},
                                                     {gradient ? "dx" : "y", y.view()},
                                                     {"p", drop_share},
                                                     {"seed", 1}});
  e.check(
      [&y] {
        constexpr std::int64_t sampled = 1 << 16;
        double sum = 0;
        for (std::int64_t i = 0; i < sampled; ++i) sum += y.at(i);
        return std::abs(sum / static_cast<double>(sampled) - 1);
      },
      0.01);  // 5 sigma are 0.0065, a bfloat16's rounding of 1 / 0.9 is 0.002
}

}  // namespace

void list_elementwise(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types) {
      rows.push_back(
          streaming_row("add", type, p, 3, [type, p](experiment& e) { fill_add(e, type, p); }));
      row sum = streaming_row("accumulate", type, p, 3,
                              [type, p](experiment& e) { fill_accumulate(e, type, p); });
      sum.work = static_cast<double>(p.count() * (8 + bytes_of(type)));
      rows.push_back(std::move(sum));
      row most = streaming_row("reduce_max_abs", type, p, 1,
                               [type, p](experiment& e) { fill_max_abs(e, type, p); });
      most.bound = limit::read;
      rows.push_back(std::move(most));
      row cast =
          streaming_row("cast", type, p, 2, [type, p](experiment& e) { fill_cast(e, type, p); });
      cast.work = 6.0 * static_cast<double>(p.count());
      rows.push_back(std::move(cast));
      for (const bool gradient : {false, true})
        rows.push_back(streaming_row(
            gradient ? "dropout_backward" : "dropout", type, p, 2,
            [type, p, gradient](experiment& e) { fill_dropout(e, type, p, gradient); }));
    }
}

}  // namespace velo::bench
