// The kernels of int8 by int8 against exact sums, those on tile registers among them: in software
// where amx_test has tiles.
#include "ops/quant/integer_product.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/round_up.hpp"
#include "core/simd/detect.hpp"
#include "tests/ops/isas.hpp"
#include "tests/random.hpp"

using namespace velo;

namespace {

std::vector<std::int8_t> noise(std::int64_t count, std::uint64_t seed) {
  testing::cheap_random64 draw(seed);
  std::vector<std::int8_t> bytes(static_cast<std::size_t>(count));
  for (std::int8_t& b : bytes) b = static_cast<std::int8_t>(draw() >> 20);
  return bytes;
}

void check(const ops::integer_product_kernels& kernels, int rows, int columns, std::int64_t depth,
           bool transposed) {
  INFO("rows " << rows << " columns " << columns << " depth " << depth << " turned " << transposed);
  const auto x = noise(rows * depth, 1), w = noise(depth * columns, 2);
  const std::int64_t padded = core::round_up(depth, std::int64_t{kernels.depth_unit});
  const std::int64_t ld = core::round_up(padded * kernels.element_bytes, std::int64_t{64}) + 64;
  const int all_rows = core::round_up(rows, ops::integer_rows);
  std::vector<char> left(static_cast<std::size_t>(all_rows * ld));
  std::vector<std::uint32_t> panel(static_cast<std::size_t>(padded * ops::integer_columns));
  std::vector<std::int32_t> start(ops::integer_columns),
      sums(static_cast<std::size_t>(all_rows * ops::integer_columns));
  kernels.take_left({x.data(), depth, rows, left.data(), ld});
  kernels.take_panel({w.data(), transposed ? depth : columns, transposed, depth, padded, columns,
                      panel.data(), start.data()});
  if (kernels.load_tiles != nullptr) kernels.load_tiles();
  kernels.multiply({left.data(), ld, rows, panel.data(), padded, start.data(), sums.data()});
  if (kernels.release_tiles != nullptr) kernels.release_tiles();
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t l = 0; l < depth; ++l)
        sum += x[static_cast<std::size_t>(i * depth + l)] *
               w[static_cast<std::size_t>(transposed ? j * depth + l : l * columns + j)];
      REQUIRE(sums[static_cast<std::size_t>(i * ops::integer_columns + j)] == sum);
    }
  }
}

}  // namespace

TEST_CASE("products of int8 are exact on every instruction set, in every form of the weight") {
  int tried = 0;
  const std::vector<std::int32_t> sums(ops::integer_columns, 3);
  const std::vector<float> factors(ops::integer_columns, 0.5f);
  for (int i = 0; i < ops::integer_product_kernel_list.count; ++i) {
    const ops::kernel_entry& entry = ops::integer_product_kernel_list.entries[i];
    const auto& kernels = *static_cast<const ops::integer_product_kernels*>(entry.kernels);
    if (kernels.plain() || entry.isa > testing::highest_isa()) continue;
    if (!core::permitted(entry.isa)) continue;  // asks for tile registers where there are any
    INFO(entry.name);
    for (const bool transposed : {false, true}) {
      check(kernels, 33, 32, 64, transposed);
      check(kernels, 5, 17, 131, transposed);
      check(kernels, 64, 3, 1, transposed);
    }
    std::vector<float> scaled(ops::integer_columns, std::nanf(""));
    kernels.scale({sums.data(), nullptr, factors.data(), nullptr, scaled.data(), 1});
    CHECK(scaled == std::vector<float>(ops::integer_columns, 1.5f));
    ++tried;
  }
  CHECK(tried > 0);
}
