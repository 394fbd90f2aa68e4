// rotary_position_embedding and its gradient over x [B, S, N, D] with one table row a position: one
// read, one write of x. The tables themselves: one write of both.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

struct heads {
  std::int64_t b, s, n, d;
  plane flat;
  std::string text() const {
    return std::to_string(b) + "x" + std::to_string(s) + "x" + std::to_string(n) + "x" +
           std::to_string(d);
  }
};

void fill(experiment& e, dtype type, const heads& h, bool backward) {
  tensor& x = e.random(type, {h.b, h.s, h.n, h.d});
  tensor& cos = e.random(type, {1, h.s, 1, h.d});
  tensor& sin = e.random(type, {1, h.s, 1, h.d});
  tensor& y = e.zeros(type, {h.b, h.s, h.n, h.d});
  for (std::int64_t i = 0; i < cos.count(); ++i) {
    const double angle =
        static_cast<double>(i / h.d) *
        std::pow(1e-4, static_cast<double>(i % (h.d / 2)) * 2 / static_cast<double>(h.d));
    cos.set(i, std::cos(angle));
    sin.set(i, std::sin(angle));
  }
  if (backward)
    e.velo("rotary_position_embedding_backward",
           {{"dy", x.view()}, {"cos", cos.view()}, {"sin", sin.view()}, {"dx", y.view()}});
  else
    e.velo("rotary_position_embedding",
           {{"x", x.view()}, {"cos", cos.view()}, {"sin", sin.view()}, {"y", y.view()}});
  e.check([&x, &cos, &sin, &y, h, backward] {
    return sampled_error(
        x.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          const std::int64_t j = i % h.d, half = h.d / 2, table = i / (h.d * h.n) % h.s * h.d;
          const bool low = j < half;
          const std::int64_t partner = low ? i + half : i - half;
          const double sign = low != backward ? -1 : 1;
          const double turn = sin.at(table + (backward ? (low ? j + half : j - half) : j));
          return x.at(i) * cos.at(table + j) + sign * x.at(partner) * turn;
        });
  });
}

void fill_tables(experiment& e, std::int64_t n, std::int64_t d) {
  tensor& positions = e.zeros(dtype::i64, {n});
  for (std::int64_t i = 0; i < n; ++i) positions.set(i, static_cast<double>(i));
  tensor& cos = e.zeros(dtype::f32, {n, d});
  tensor& sin = e.zeros(dtype::f32, {n, d});
  e.velo("rope_frequencies",
         {{"positions", positions.view()}, {"cos", cos.view()}, {"sin", sin.view()}, {"dim", d}});
  e.check([&cos, n, d] {
    return sampled_error(
        n * d, [&](std::int64_t i) { return cos.at(i); },
        [&](std::int64_t i) {
          const double power = -2 * static_cast<double>(i % (d / 2)) / static_cast<double>(d);
          return std::cos(static_cast<double>(i / d) * std::pow(1e4, power));
        });
  });
}

}  // namespace

void list_rope(std::vector<row>& rows) {
  for (const heads& h : {heads{4, 2048, 32, 128, dram_plane}, heads{1, 256, 32, 128, cache_plane}})
    for (dtype type : operator_types)
      for (bool backward : {false, true}) {
        const std::string op =
            backward ? "rotary_position_embedding_backward" : "rotary_position_embedding";
        row made = streaming_row(op, type, h.flat, 2, [type, h, backward](experiment& e) {
          fill(e, type, h, backward);
        });
        made.shape = h.text();
        rows.push_back(std::move(made));
      }
  const plane table{8192, 128, "dram"};
  row made = streaming_row("rope_frequencies", dtype::f32, table, 2,
                           [](experiment& e) { fill_tables(e, 8192, 128); });
  rows.push_back(std::move(made));
}

}  // namespace velo::bench
