// Outputs among other tensors: side by side in common rows is allowed, shared elements are refused.
#include "tests/ops/operator_testing.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

// A call whose x and y are columns of common rows of 32: x the eight from 0 on in rows 0 .. 3, y by
// the parameters.
velo_status call(std::int64_t y_column, std::int64_t y_stride, std::int64_t y_heads = 1) {
  session s;
  std::vector<float> memory(2 * 4 * 32 + 64), angles(8);
  const std::int64_t x_shape[] = {2, 2, y_heads, 8}, table_shape[] = {1, 1, 1, 8};
  const std::int64_t x_strides[] = {64, 32, 8, 1}, y_strides[] = {2 * y_stride, y_stride, 8, 1};
  velo_tensor x = view_of(memory.data(), f32, x_shape, x_strides);
  velo_tensor y = x, table = x;
  y.data = memory.data() + y_column, y.strides = y_strides;
  table.data = angles.data(), table.shape = table_shape, table.strides = nullptr;
  velo_rotary_position_embedding_args args = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
  args.x = &x, args.y = &y, args.cos = &table, args.sin = &table;
  return velo_rotary_position_embedding(s.stream(), &args);
}

}  // namespace

TEST_CASE("an output may lie beside an input in common rows") {
  CHECK(call(8, 32) == VELO_OK);
  CHECK(call(24, 32) == VELO_OK);
  CHECK(call(16, 32, 2) == VELO_OK);
  CHECK(call(32 + 8, 32) == VELO_OK);
  CHECK(call(8, 64) == VELO_OK);
}

TEST_CASE("an output may not share elements with an input, whole or in part") {
  CHECK(call(7, 32) == VELO_ERR_OVERLAP);
  CHECK(call(25, 32) == VELO_ERR_OVERLAP);
  CHECK(call(8, 32, 2) == VELO_ERR_OVERLAP);
  CHECK(call(32, 32) == VELO_ERR_OVERLAP);
  CHECK(call(8, 40) == VELO_ERR_OVERLAP);
}

TEST_CASE("an output may be its input where the operator says so") {
  CHECK(call(0, 32) == VELO_OK);
}
