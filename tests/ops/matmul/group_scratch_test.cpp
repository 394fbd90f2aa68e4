// Products over groups of rows take scratch for their largest group, however many groups there are;
// gradients and products in blocks of rows for their largest product.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t rows = 64, k = 64, n = 48;

// The bytes that a context holds after a call, and after a second one that finds the scratch of
// the first in one piece.
template <class Call>
std::uint64_t bytes_after(const Call& call) {
  session s;
  velo_context_stats now = VELO_CONTEXT_STATS_INIT;
  for (int round = 0; round < 2; ++round) VELO_RUN(call(s));
  REQUIRE(velo_context_get_stats(s.context(), &now) == VELO_OK);
  return now.bytes_allocated;
}

// All rows in groups of one size.
struct equal_groups {
  explicit equal_groups(std::int64_t count)
      : groups(count), counts(static_cast<std::size_t>(count), rows / count) {}
  template <class Args>
  void set_list(Args& args) {
    list = {counts.data(), groups};
    args.group_list = &list, args.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  }
  std::int64_t groups;
  std::vector<std::int64_t> counts;
  velo_ints list{};
};

velo_status multiply_weights(session& s, std::int64_t groups) {
  equal_groups in(groups);
  array<float> x({rows, k}), scale({groups, n}), y({rows, n});
  array<std::int8_t> weight({groups, k, n});
  velo_weight_quant_grouped_matmul_args args = VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT;
  args.x = x.tensor(), args.weight = weight.tensor(), args.scale = scale.tensor();
  args.y = y.tensor();
  in.set_list(args);
  return velo_weight_quant_grouped_matmul(s.stream(), &args);
}

velo_status multiply_integers(session& s, std::int64_t groups) {
  equal_groups in(groups);
  array<std::int8_t> x({rows, k}), weight({groups, k, n});
  array<float> scale({groups, n}), y({rows, n});
  velo_quant_grouped_matmul_args args = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
  args.x = x.tensor(), args.weight = weight.tensor(), args.scale = scale.tensor();
  args.y = y.tensor(), args.output_dtype = VELO_QUANT_OUTPUT_FLOAT32;
  in.set_list(args);
  return velo_quant_grouped_matmul(s.stream(), &args);
}

velo_status feed_weights(session& s, std::int64_t groups) {
  equal_groups in(groups);
  array<float> x({rows, k}), scale1({groups, n}), scale2({groups, k}), y({rows, k});
  array<std::int8_t> weight1({groups, k, n}), weight2({groups, n, k});
  velo_ffn_args args = VELO_FFN_ARGS_INIT;
  args.x = x.tensor(), args.weight1 = weight1.tensor(), args.weight2 = weight2.tensor();
  args.antiquant_scale1 = scale1.tensor(), args.antiquant_scale2 = scale2.tensor();
  args.y = y.tensor();
  in.set_list(args);
  return velo_ffn(s.stream(), &args);
}

velo_status feed_integers(session& s, std::int64_t groups) {
  equal_groups in(groups);
  array<std::int8_t> x({rows, k}), weight1({groups, k, n}), weight2({groups, n, k});
  array<float> scale({1}), deq1({groups, n}), deq2({groups, k}), y({rows, k});
  velo_ffn_args args = VELO_FFN_ARGS_INIT;
  args.x = x.tensor(), args.weight1 = weight1.tensor(), args.weight2 = weight2.tensor();
  args.scale = scale.tensor(), args.deq_scale1 = deq1.tensor(), args.deq_scale2 = deq2.tensor();
  args.y = y.tensor(), args.output_dtype = VELO_QUANT_OUTPUT_FLOAT32;
  in.set_list(args);
  return velo_ffn(s.stream(), &args);
}

}  // namespace

TEST_CASE("products over many groups take no more scratch than over few") {
  struct {
    const char* name;
    velo_status (*call)(session&, std::int64_t);
  } const calls[] = {{"weight_quant_grouped_matmul", &multiply_weights},
                     {"quant_grouped_matmul", &multiply_integers},
                     {"ffn of quantized weights", &feed_weights},
                     {"ffn of integers", &feed_integers}};
  for (const auto& each : calls) {
    INFO(each.name);
    const auto bytes = [&](std::int64_t groups) {
      return bytes_after([&](session& s) { return each.call(s, groups); });
    };
    constexpr std::uint64_t bounds_of_groups = 64 * sizeof(std::int64_t);
    CHECK(bytes(32) <= bytes(2) + bounds_of_groups);
    CHECK(bytes(64) <= bytes(2) + bounds_of_groups);  // one row each
  }
}

TEST_CASE("a gradient of three products takes the scratch of the largest") {
  constexpr std::int64_t size = 256;
  array<float> dc({size, size}), a({size, size}), b({size, size}), da({size, size});
  array<float> db({size, size}), dbias({size});
  dc.fill(1), a.fill(2), b.fill(3);
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.a = a.tensor(), args.b = b.tensor();
  const auto bytes = [&] {
    return bytes_after([&](session& s) { return velo_matmul_backward(s.stream(), &args); });
  };
  args.da = da.tensor();
  const std::uint64_t of_da = bytes();
  args.da = nullptr, args.db = db.tensor();
  const std::uint64_t of_db = bytes();
  args.da = da.tensor(), args.dbias = dbias.tensor();
  CHECK(bytes() == std::max(of_da, of_db));
}
