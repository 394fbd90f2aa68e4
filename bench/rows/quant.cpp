// Products with weights of int8 and int4, plain and packed: one row, which is held to the bandwidth
// that its weight is read at, and many, held to the peak of products of x's dtype; products of int8
// by int8, whose peak is four times that of float32 where there is VNNI; the quantizer of rows.
//
// The shape reads MxNxK, followed by int8 or int4, nt where the weight is stored [n, k], and the
// number of weights where groups of rows have their own.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

struct quantized_product {
  std::int64_t m, n, k;
  bool int4, transposed;
  bool packed = false;      // from [n, k], or from [k, n] of groups
  std::int64_t groups = 0;  // of rows, each with a weight; 0: one weight, of two dimensions
  std::int64_t weights() const { return std::max<std::int64_t>(groups, 1); }
  std::int64_t bytes() const { return weights() * n * k / (int4 ? 2 : 1); }
  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
           (int4 ? " int4" : " int8") + (transposed && !packed ? " nt" : "") +
           (groups > 0 ? " " + std::to_string(groups) : "");
  }
  // A shape of something that each weight has.
  std::vector<std::int64_t> of_each(std::vector<std::int64_t> shape) const {
    if (groups > 0) shape.insert(shape.begin(), groups);
    return shape;
  }
};

const pack& packed_integers(experiment& e, const velo_tensor& weight, const quantized_product& p) {
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = {VELO_DTYPE_INT, static_cast<std::uint8_t>(p.int4 ? 4 : 8), 1};
  desc.weight_only = 1, desc.transpose = p.transposed;
  desc.k = p.k, desc.n = p.n, desc.count = p.groups;
  auto made = std::make_shared<pack>(pack::create(e.owner().owner, desc));
  made->update(e.owner().stream, weight);
  e.keep(made);
  return *made;
}

void fill_weight_only(experiment& e, dtype type, const quantized_product& p) {
  constexpr std::int64_t group = 128;  // of int4; int8 has scales by channel
  const std::int64_t scales = p.int4 ? p.k / group : 1, pairs = p.int4 ? 2 : 1;
  tensor& x = e.random(type, {p.m, p.k});
  tensor& y = e.zeros(type, {p.m, p.n});
  tensor& scale =
      e.random(dtype::f32, p.of_each(p.int4 ? std::vector{scales, p.n} : std::vector{p.n}));
  const void* w = bytes_of_noise(e, p.bytes());
  const row_groups rows(e, p.m, p.weights());
  const std::vector<std::int64_t> stored{p.transposed ? p.n : p.k,
                                         (p.transposed ? p.k : p.n) / pairs};
  const tensor_view weight(w, p.int4 ? u8 : i8, sizes_of(p.of_each(stored)));
  std::vector<named_value> values{{"x", x.view()}, {"scale", scale.view()}, {"y", y.view()}};
  if (p.packed) {
    values.emplace_back("packed", packed_integers(e, weight, p));
  } else {
    values.emplace_back("weight", weight);
    values.push_back({"transpose_weight", p.transposed});
  }
  if (p.groups > 0) values.push_back({"group_list", *rows.list});
  e.velo(p.groups > 0 ? "weight_quant_grouped_matmul" : "weight_quant_matmul", values);
  e.check([&x, &y, &scale, w, p, rows, scales] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t index) {
          const std::int64_t i = index / p.n, j = index % p.n, of = rows.group_of(i);
          double sum = 0;
          for (std::int64_t l = 0; l < p.k; ++l)
            sum +=
                x.at(i * p.k + l) *
                integer_at(w, p.int4, of * p.k * p.n + (p.transposed ? j * p.k + l : l * p.n + j)) *
                scale.at((of * scales + (p.int4 ? l / group : 0)) * p.n + j);
          return sum;
        });
  });
}

void fill_integers(experiment& e, dtype type, const quantized_product& p, bool from_pack) {
  tensor& y = e.zeros(type, {p.m, p.n});
  tensor& scale = e.random(dtype::f32, {1, p.n}, 1e-6);
  const void *x = bytes_of_noise(e, p.m * p.k), *w = bytes_of_noise(e, p.bytes());
  auto ends = std::make_shared<std::int64_t>(p.m);
  auto list = std::make_shared<velo_ints>(velo_ints{ends.get(), 1});
  e.keep(ends);
  e.keep(list);
  const tensor_view weight(w, i8, {1, p.k, p.n});
  const named_value right =
      from_pack ? named_value("packed", packed(e, weight)) : named_value("weight", weight);
  e.velo("quant_grouped_matmul", {{"x", tensor_view(x, i8, {p.m, p.k})},
                                  right,
                                  {"scale", scale.view()},
                                  {"y", y.view()},
                                  {"group_list", *list},
                                  {"output_dtype", type == dtype::f16    ? "float16"
                                                   : type == dtype::bf16 ? "bfloat16"
                                                                         : "float32"}});
  e.check([&y, &scale, x, w, p] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t index) {
          const std::int64_t i = index / p.n, j = index % p.n;
          double sum = 0;
          for (std::int64_t l = 0; l < p.k; ++l)
            sum += integer_at(x, false, i * p.k + l) * integer_at(w, false, l * p.n + j);
          return sum * scale.at(j);
        });
  });
}

void fill_quantize(experiment& e, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& scale = e.zeros(dtype::f32, {p.rows});
  auto* y = static_cast<std::int8_t*>(bytes_of_noise(e, p.count()));
  e.velo("quantize", {{"x", x.view()},
                      {"y", tensor_view(y, i8, {p.rows, p.columns})},
                      {"scale", scale.view()},
                      {"over", "token"}});
  e.check(
      [&x, y, p] {
        double largest = 0;
        for (std::int64_t i = 0; i < p.columns; ++i) largest = std::max(largest, std::abs(x.at(i)));
        return sampled_error(
            p.columns, [&](std::int64_t i) { return static_cast<double>(y[i]); },
            [&](std::int64_t i) { return std::nearbyint(x.at(i) / (largest / 127)); });
      },
      0.01);
}

void list_weight_only(const machine& on, dtype type, const quantized_product& p,
                      std::vector<row>& rows) {
  const double flop =
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const bool one = p.m == 1;
  const std::string op = p.groups > 0 ? "weight_quant_grouped_matmul" : "weight_quant_matmul";
  // torch has its weights [n, k]; 512 rows of float32 or float16 take it seconds
  const bool has_peer = p.groups == 0 && p.transposed && !p.packed && (one || type == dtype::bf16);
  const limit of_products = p.m > 16 ? product_limit(on, type) : limit::fma_f32;
  row made{p.packed ? op + "_packed" : op,
           type,
           p.text(),
           one ? "dram" : "cache",
           one ? "GB/s" : "GF/s",
           one ? static_cast<double>(p.bytes()) : flop,
           one ? limit::read : of_products,
           op,
           has_peer ? op : "",
           [type, p](experiment& e) { fill_weight_only(e, type, p); }};
  made.footprint = one ? p.bytes() : 0;
  rows.push_back(std::move(made));
}

}  // namespace

void list_quant(const machine& on, std::vector<row>& rows) {
  for (dtype type : operator_types) {
    for (const bool int4 : {false, true}) {
      for (const bool transposed : {false, true}) {
        list_weight_only(on, type, {1, 4096, 4096, int4, transposed}, rows);
        list_weight_only(on, type, {8, 4096, 4096, int4, transposed}, rows);
        list_weight_only(on, type, {512, 2048, 2048, int4, transposed}, rows);
      }
      for (const std::int64_t m : {1, 8, 512}) {
        const std::int64_t side = m > 16 ? 2048 : 4096;
        list_weight_only(on, type, {m, side, side, int4, true, true}, rows);
      }
      for (const std::int64_t m : {64, 1024})
        for (const bool packed : {false, true})
          list_weight_only(on, type, {m, 2048, 2048, int4, false, packed, 8}, rows);
    }
    for (const std::int64_t m : {8, 512}) {
      const quantized_product p{m, 2048, 2048, false, false};
      const double flop =
          2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
      for (const bool packed : {false, true}) {
        rows.push_back({packed ? "quant_grouped_matmul_packed" : "quant_grouped_matmul", type,
                        p.text(), "cache", "GF/s", flop, limit::fma_f32, "quant_grouped_matmul", "",
                        [type, p, packed](experiment& e) { fill_integers(e, type, p, packed); }});
      }
    }
    for (const plane& p : {dram_plane, cache_plane}) {
      row quantizer = streaming_row("quantize", type, p, 1,
                                    [type, p](experiment& e) { fill_quantize(e, type, p); });
      quantizer.bound = p.dram() ? limit::read : limit::cache_read;
      quantizer.torch = "";
      rows.push_back(std::move(quantizer));
    }
  }
}

}  // namespace velo::bench
