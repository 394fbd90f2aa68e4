// generate_mask, which writes a byte for every key of every position, and alibi_slopes, which reads
// 8 bytes and writes 4 for every head. Both are named by the type of the indices that they read.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

tensor& counted(experiment& e, std::int64_t count) {
  tensor& numbers = e.zeros(dtype::i64, {count});
  for (std::int64_t i = 0; i < count; ++i) numbers.set(i, static_cast<double>(i));
  return numbers;
}

// The window of a causal mask that sees 1024 keys back.
void fill_mask(experiment& e, std::int64_t rows, std::int64_t keys) {
  constexpr std::int64_t back = 1024;
  auto* mask = static_cast<std::uint8_t*>(bytes_of_noise(e, rows * keys));
  e.velo("generate_mask", {{"positions", counted(e, rows).view()},
                           {"mask", tensor_view(mask, u8, {rows, keys})},
                           {"keys", keys},
                           {"pre_tokens", back},
                           {"next_tokens", std::int64_t{0}}});
  e.check([mask, rows, keys] {
    return sampled_error(
        rows * keys, [&](std::int64_t i) { return static_cast<double>(mask[i]); },
        [&](std::int64_t i) {
          const std::int64_t position = i / keys, key = i % keys;
          return key > position || key < position - back ? 1.0 : 0.0;
        });
  });
}

void fill_slopes(experiment& e, std::int64_t heads) {
  tensor& slopes = e.zeros(dtype::f32, {heads});
  e.velo("alibi_slopes",
         {{"heads", counted(e, heads).view()}, {"slopes", slopes.view()}, {"head_num", heads}});
  e.check([&slopes, heads] {  // a power of two
    return sampled_error(
        heads, [&](std::int64_t i) { return slopes.at(i); },
        [&](std::int64_t i) {
          return std::exp2(-8.0 * static_cast<double>(i + 1) / static_cast<double>(heads));
        });
  });
}

row made(const std::string& op, std::int64_t bytes, const std::string& shape, bool dram,
         std::function<void(experiment&)> fill) {
  row one{op,
          dtype::i64,
          shape,
          dram ? "dram" : "cache",
          "GB/s",
          static_cast<double>(bytes),
          dram ? limit::copy_nt : limit::cache_copy,
          op,
          "",
          std::move(fill)};
  one.footprint = dram ? bytes : 0;
  return one;
}

}  // namespace

void list_masks(std::vector<row>& rows) {
  for (const std::int64_t size : {8192, 1024})
    rows.push_back(made("generate_mask", size * size,
                        std::to_string(size) + "x" + std::to_string(size), size == 8192,
                        [size](experiment& e) { fill_mask(e, size, size); }));
  constexpr std::int64_t heads = 65536;
  rows.push_back(made("alibi_slopes", 12 * heads, std::to_string(heads), false,
                      [](experiment& e) { fill_slopes(e, heads); }));
}

}  // namespace velo::bench
