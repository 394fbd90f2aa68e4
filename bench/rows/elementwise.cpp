// add (two reads, one write) and cast (a row is named by its source type: f32 to bf16 or back, 6
// bytes an element).
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

}  // namespace

void list_elementwise(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types) {
      rows.push_back(
          streaming_row("add", type, p, 3, [type, p](experiment& e) { fill_add(e, type, p); }));
      row cast =
          streaming_row("cast", type, p, 2, [type, p](experiment& e) { fill_cast(e, type, p); });
      cast.work = 6.0 * static_cast<double>(p.count());
      rows.push_back(std::move(cast));
    }
}

}  // namespace velo::bench
