// cached_attention of one new token a sequence: bytes of the cache a second where it is bound by
// reading them (one or few query heads a key head), else flop; checked against a double sum of one
// head. A head's tokens lie side by side; in interleaved a token's heads do. pages: 16 tokens each,
// out of order; absorbed: one key head, whose first 512 columns are the values.
#include <cmath>
#include <deque>
#include <memory>
#include <string_view>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t page_tokens = 16;

struct cache_shape {
  std::int64_t b, heads, kv_heads, s, d, dv;
  const char* kind;  // plain, pages, int8, absorbed

  bool is(std::string_view name) const { return kind == name; }
  std::string text() const {
    return std::to_string(b) + "x" + std::to_string(heads) + "/" + std::to_string(kv_heads) + "x" +
           std::to_string(s) + "x" + std::to_string(d) + " " + kind;
  }
  std::int64_t rows() const { return b * s * kv_heads; }
  std::int64_t pages() const { return b * s / page_tokens; }
  double flop() const { return 2.0 * static_cast<double>(b * heads * s * (d + dv)); }
  double bytes(dtype type) const {
    const std::int64_t columns = is("absorbed") ? d : d + dv;
    return static_cast<double>(rows() * (is("int8") ? columns + 8 : columns * bytes_of(type)));
  }
  double scale() const { return 4 / std::sqrt(static_cast<double>(d)); }
  // Rows of so many columns: pages or sequences, their tokens and heads.
  std::int64_t blocks() const { return is("pages") ? pages() : b; }
  std::int64_t tokens() const { return is("pages") ? page_tokens : s; }
  tensor_view view(const void* data, velo_dtype type, std::int64_t columns,
                   std::int64_t step) const {
    const std::int64_t token = is("interleaved") ? kv_heads * step : step;
    const std::int64_t head = is("interleaved") ? step : tokens() * step;
    const std::int64_t block = kv_heads * tokens() * step;
    if (columns == 1) return {data, type, {blocks(), tokens(), kv_heads}, {block, token, head}};
    return {data, type, {blocks(), tokens(), kv_heads, columns}, {block, token, head, 1}};
  }
  // The row of the first head that holds a token of the first sequence.
  std::int64_t row(std::int64_t j) const {
    if (is("pages")) return page(j / page_tokens) * kv_heads * page_tokens + j % page_tokens;
    return is("interleaved") ? j * kv_heads : j;
  }
  std::int64_t page(std::int64_t i) const { return is("pages") ? i * 37 % pages() : i; }
};

// The cache: tensors of the query's type, or int8 with factors.
struct cache_memory {
  std::vector<std::int8_t> k8, v8;
  std::vector<std::int32_t> table, lengths;
  std::deque<tensor_view> views;  // named values borrow them
  tensor *k = nullptr, *v = nullptr, *key_scale = nullptr, *value_scale = nullptr;

  double key(const cache_shape& c, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * c.d + column;
    return k != nullptr ? k->at(at) : k8[static_cast<std::size_t>(at)] * key_scale->at(row);
  }
  double value(const cache_shape& c, std::int64_t row, std::int64_t column) const {
    if (c.is("absorbed")) return key(c, row, column);
    const std::int64_t at = row * c.dv + column;
    return v != nullptr ? v->at(at) : v8[static_cast<std::size_t>(at)] * value_scale->at(row);
  }
};

std::vector<std::int8_t> random_bytes(std::int64_t count) {
  std::vector<std::int8_t> out(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (std::int8_t& x : out)
    x = static_cast<std::int8_t>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

void add_cache(experiment& e, dtype type, const cache_shape& c, cache_memory& m,
               std::vector<named_value>& values) {
  const auto add = [&](const char* name, const void* data, velo_dtype of, std::int64_t columns,
                       std::int64_t step) {
    values.emplace_back(name, m.views.emplace_back(c.view(data, of, columns, step)));
  };
  const std::int64_t rows = c.rows();
  if (c.is("int8")) {
    constexpr velo_dtype i8{VELO_DTYPE_INT, 8, 1};
    m.k8 = random_bytes(rows * c.d), m.v8 = random_bytes(rows * c.dv);
    m.key_scale = &e.random(dtype::f32, {rows}, 0.01);
    m.value_scale = &e.random(dtype::f32, {rows}, 0.01);
    add("key", m.k8.data(), i8, c.d, c.d), add("value", m.v8.data(), i8, c.dv, c.dv);
    add("key_scale", m.key_scale->data(), velo::dtype<float>, 1, 1);
    add("value_scale", m.value_scale->data(), velo::dtype<float>, 1, 1);
    return;
  }
  m.k = &e.random(type, {rows, c.d});
  const velo_dtype of = static_cast<const velo_tensor&>(m.k->view()).dtype;
  add("key", m.k->data(), of, c.d, c.d);
  if (c.is("absorbed")) return add("value", m.k->data(), of, c.dv, c.d);
  m.v = &e.random(type, {rows, c.dv});
  add("value", m.v->data(), of, c.dv, c.dv);
  if (!c.is("pages")) return;
  for (std::int64_t i = 0; i < c.pages(); ++i)
    m.table.push_back(static_cast<std::int32_t>(c.page(i)));
  m.lengths.assign(static_cast<std::size_t>(c.b), static_cast<std::int32_t>(c.s));
  values.emplace_back("block_table",
                      m.views.emplace_back(m.table.data(), sizes{c.b, c.pages() / c.b}));
  values.emplace_back("cache_seqlens", m.views.emplace_back(m.lengths.data(), sizes{c.b}));
}

// The first head of the first sequence.
std::vector<double> exact_head(const cache_shape& c, const cache_memory& m, const tensor& q) {
  std::vector<double> out(static_cast<std::size_t>(c.dv));
  double sum = 0;
  for (std::int64_t j = 0; j < c.s; ++j) {
    const std::int64_t row = c.row(j);
    double dot = 0;
    for (std::int64_t l = 0; l < c.d; ++l) dot += q.at(l) * m.key(c, row, l);
    const double p = std::exp(dot * c.scale());
    sum += p;
    for (std::int64_t l = 0; l < c.dv; ++l)
      out[static_cast<std::size_t>(l)] += p * m.value(c, row, l);
  }
  for (double& x : out) x /= sum;
  return out;
}

void fill(experiment& e, dtype type, const cache_shape& c) {
  const auto memory = std::make_shared<cache_memory>();
  e.keep(memory);
  const tensor& q = e.random(type, {c.b, 1, c.heads, c.d});
  const tensor& out = e.zeros(type, {c.b, 1, c.heads, c.dv});
  std::vector<named_value> values{
      {"query", q.view()}, {"attention_out", out.view()}, {"scale", c.scale()}};
  add_cache(e, type, c, *memory, values);
  e.velo("cached_attention", values);
  e.check([&q, &out, c, memory] {
    const std::vector<double> want = exact_head(c, *memory, q);
    return sampled_error(
        c.dv, [&](std::int64_t l) { return out.at(l); },
        [&](std::int64_t l) { return want[static_cast<std::size_t>(l)]; });
  });
}

}  // namespace

void list_cached_attention(const machine& m, std::vector<row>& rows) {
  constexpr cache_shape shapes[] = {
      {1, 32, 32, 4096, 128, 128, "plain"},       {1, 32, 8, 16384, 128, 128, "plain"},
      {1, 32, 8, 16384, 128, 128, "interleaved"}, {4, 32, 8, 4096, 128, 128, "pages"},
      {1, 32, 32, 8192, 128, 128, "int8"},        {1, 32, 8, 16384, 128, 128, "int8"},
      {1, 128, 1, 8192, 576, 512, "absorbed"}};
  for (dtype type : operator_types)
    for (const cache_shape& c : shapes) {
      const bool products = c.is("absorbed") || (c.is("int8") && c.heads > c.kv_heads);
      const limit of_products = c.is("int8") ? limit::fma_f32 : product_limit(m, type);
      row made{"cached_attention",
               type,
               c.text(),
               products ? "cache" : "dram",
               products ? "GF/s" : "GB/s",
               products ? c.flop() : c.bytes(type),
               products ? of_products : limit::read,
               "cached_attention",
               "",
               [type, c](experiment& e) { fill(e, type, c); }};
      made.footprint = products ? 0 : static_cast<std::int64_t>(c.bytes(type));
      rows.push_back(std::move(made));
    }
}

}  // namespace velo::bench
