// velo_op_cost and the counters: flops and bytes of known calls, attention's scores counted one by
// one, the time at configured limits, and what is refused.
#include <thread>

#include "tests/capi/values.hpp"

using namespace velo::testing;

namespace {

velo_tensor shaped(velo_dtype dtype, const std::vector<std::int64_t>& shape) {
  return view_of(nullptr, dtype, shape.data(), static_cast<std::int32_t>(shape.size()));
}

velo_cost cost_of(const live_context& c, const char* op, const named& values) {
  velo_cost cost = VELO_COST_INIT;
  INFO(op);
  REQUIRE(velo_op_cost(c, op, values.data(), static_cast<std::int64_t>(values.size()), &cost) ==
          VELO_OK);
  return cost;
}

void check_bytes(const velo_cost& cost, double read, double written) {
  CHECK(cost.bytes_read == read);
  CHECK(cost.bytes_written == written);
}

// Query heads of size d over key heads, values of size dv.
struct attention {
  std::int64_t batch, heads, sq, skv, d, dv;
  std::vector<std::int64_t> q_shape{batch, heads, sq, d}, k_shape{batch, heads, skv, d},
      v_shape{batch, heads, skv, dv};
  velo_tensor q = shaped(f32, q_shape), k = shaped(f32, k_shape), v = shaped(f32, v_shape);

  named values(std::int64_t mode) const {
    return {{"query", of(q)},
            {"key", of(k)},
            {"value", of(v)},
            {"layout", string("bnsd")},
            {"sparse_mode", integer(mode)}};
  }
  double scores(bool right_down) const {
    double visible = 0;
    for (std::int64_t i = 0; i < sq; ++i)
      for (std::int64_t j = 0; j < skv; ++j) visible += j <= i + (right_down ? skv - sq : 0);
    return visible;
  }
};

}  // namespace

TEST_CASE("a product costs 2 m n k flops, and its operands' bytes") {
  const live_context c;
  const std::vector<std::int64_t> a_shape{2, 3, 40}, b_shape{40, 7}, c_shape{2, 3, 7},
      bias_shape{7};
  const velo_tensor a = shaped(bf16, a_shape), b = shaped(bf16, b_shape), y = shaped(bf16, c_shape),
                    bias = shaped(f32, bias_shape);
  named values = {{"a", of(a)}, {"b", of(b)}};
  velo_cost cost = cost_of(c, "matmul", values);
  CHECK(cost.flops == 2.0 * 6 * 40 * 7);
  CHECK(cost.flops_visible == cost.flops);
  CHECK(cost.seconds == 0);
  check_bytes(cost, 2.0 * (6 * 40 + 40 * 7), 2.0 * 6 * 7);
  values.push_back({"bias", of(bias)});
  values.push_back({"c", of(y)});
  values.push_back({"accumulate", integer(1)});
  check_bytes(cost_of(c, "matmul", values), 2.0 * (6 * 40 + 40 * 7 + 6 * 7) + 4 * 7, 2.0 * 6 * 7);
}

TEST_CASE("a pack counts as the weight that it holds") {
  const live_context c;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = 40, desc.n = 7;
  velo_pack pack = nullptr;
  REQUIRE(velo_pack_create(c, &desc, &pack) == VELO_OK);
  const std::vector<std::int64_t> shape{6, 40};
  const velo_tensor a = shaped(f32, shape);
  const velo_cost cost = cost_of(c, "matmul", {{"a", of(a)}, {"packed", handle(pack)}});
  CHECK(cost.flops == 2.0 * 6 * 40 * 7);
  check_bytes(cost, 4.0 * (6 * 40 + 40 * 7), 4.0 * 6 * 7);
  velo_pack_destroy(pack);
}

TEST_CASE("a pack of int4 counts its bytes, and many rows of bfloat16 as products of it") {
  const live_context c(
      R"({"limits.f32_gflops": 1e-3, "limits.bf16_gflops": 2e-3, "limits.copy_gbytes": 1e9})");
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = 64, desc.n = 8, desc.dtype = {VELO_DTYPE_INT, 4, 1}, desc.weight_only = 1;
  velo_pack pack = nullptr;
  REQUIRE(velo_pack_create(c, &desc, &pack) == VELO_OK);
  const std::vector<std::int64_t> few{16, 64}, many{17, 64}, columns{8};
  const velo_tensor scale = shaped(f32, columns);
  for (const auto& shape : {few, many}) {
    const velo_tensor x = shaped(bf16, shape);
    const auto m = static_cast<double>(shape[0]);
    const velo_cost cost = cost_of(c, "weight_quant_matmul",
                                   {{"x", of(x)}, {"packed", handle(pack)}, {"scale", of(scale)}});
    CHECK(cost.flops == 2 * m * 64 * 8);
    CHECK(cost.seconds == Approx(cost.flops / (m > 16 ? 2e6 : 1e6)));
    check_bytes(cost, 2 * m * 64 + 64 * 8 / 2.0 + 4 * 8, 2 * m * 8);
  }
  velo_pack_destroy(pack);
}

TEST_CASE("rows of experts cost what is read and written of them, once") {
  const live_context c;
  const std::vector<std::int64_t> rows{6, 40}, tokens{3, 40}, indices{6}, probs{3, 2}, logits{3, 8};
  const velo_tensor permuted = shaped(bf16, rows), dy = shaped(bf16, tokens),
                    sorted = shaped(i32, indices), weights = shaped(f32, probs),
                    scores = shaped(f32, logits);
  const double row = 2.0 * 40, sums = 4.0 * 6;
  const named rows_back = {
      {"permuted", of(permuted)}, {"sorted_indices", of(sorted)}, {"probs", of(weights)}};
  check_bytes(cost_of(c, "moe_token_unpermute", rows_back), 6 * row + 2 * sums, 3 * row);
  named gradient = rows_back;
  gradient.push_back({"dy", of(dy)});
  gradient.push_back({"dpermuted", of(permuted)});
  check_bytes(cost_of(c, "moe_token_unpermute_backward", gradient), 3 * row + 2 * sums, 6 * row);
  gradient.push_back({"dprobs", of(weights)});
  check_bytes(cost_of(c, "moe_token_unpermute_backward", gradient), 9 * row + 2 * sums,
              6 * row + sums);
  check_bytes(cost_of(c, "topk_router", {{"logits", of(scores)}, {"k", integer(2)}}), 4.0 * 3 * 8,
              2 * sums);
}

TEST_CASE("attention counts every score, and as visible those that the mask leaves") {
  const live_context c;
  for (const auto& [sq, skv] : {std::pair{5, 5}, {3, 8}, {8, 3}, {1, 1}, {0, 4}}) {
    INFO("Sq " << sq << ", Skv " << skv);
    const attention call{2, 4, sq, skv, 16, 8};
    const double per_score = 2.0 * 2 * 4 * (16 + 8);
    for (const std::int64_t mode : {0, 2, 3}) {
      const velo_cost cost = cost_of(c, "fusion_attention", call.values(mode));
      const double all = static_cast<double>(sq) * skv;
      CHECK(cost.flops == per_score * all);
      CHECK(cost.flops_visible == per_score * (mode == 0 ? all : call.scores(mode == 3)));
    }
  }
}

TEST_CASE("a batch of any size costs no time to count") {
  const live_context c;
  constexpr std::int64_t batch = std::int64_t{1} << 44;
  const attention call{batch, 4, 5, 8, 16, 8};
  const velo_cost cost = cost_of(c, "fusion_attention", call.values(3));
  CHECK(cost.flops_visible == 2.0 * batch * 4 * (16 + 8) * call.scores(true));
}

TEST_CASE("attention over packed sequences counts them one by one, and its gradient twice") {
  const live_context c;
  const std::vector<std::int64_t> shape{9, 2, 16}, stats_shape{9, 2};
  const velo_tensor rows = shaped(f32, shape), stats = shaped(f32, stats_shape);
  const std::int64_t ends[] = {2, 2, 9};
  const velo_ints lengths{ends, 3};
  named values = {{"query", of(rows)},
                  {"key", of(rows)},
                  {"value", of(rows)},
                  {"layout", string("tnd")},
                  {"sparse_mode", integer(3)},
                  {"actual_seq_qlen", of(lengths)},
                  {"actual_seq_kvlen", of(lengths)}};
  const velo_cost forward = cost_of(c, "fusion_attention", values);
  CHECK(forward.flops == 4.0 * 2 * 16 * (2 * 2 + 7 * 7));
  CHECK(forward.flops_visible == 4.0 * 2 * 16 * (3 + 28));
  for (const char* name : {"dy", "attention_out"}) values.push_back({name, of(rows)});
  for (const char* name : {"softmax_max", "softmax_sum"}) values.push_back({name, of(stats)});
  const velo_cost backward = cost_of(c, "fusion_attention_backward", values);
  CHECK(backward.flops == 2 * forward.flops);
  CHECK(backward.flops_visible == 2 * forward.flops_visible);
  check_bytes(backward, 4.0 * (5 * 288 + 2 * 18), 4.0 * 3 * 288);
}

TEST_CASE("an operator without a product costs bytes alone, and reads what it adds to") {
  const live_context c;
  const std::vector<std::int64_t> x_shape{6, 40}, gamma_shape{40}, rstd_shape{6, 1}, ids_shape{5};
  const velo_tensor x = shaped(f16, x_shape), gamma = shaped(f32, gamma_shape),
                    rstd = shaped(f32, rstd_shape), ids = shaped(i32, ids_shape);
  const velo_cost forward = cost_of(c, "rms_norm", {{"x", of(x)}, {"gamma", of(gamma)}});
  CHECK(forward.flops == 0);
  check_bytes(forward, 2.0 * 240 + 4 * 40, 2.0 * 240);
  named values = {{"dy", of(x)},      {"x", of(x)},          {"gamma", of(gamma)},
                  {"rstd", of(rstd)}, {"dgamma", of(gamma)}, {"accumulate", integer(0)}};
  check_bytes(cost_of(c, "rms_norm_backward", values), 4.0 * 240 + 4 * 46, 2.0 * 240 + 4 * 40);
  values.back().value = integer(1);
  check_bytes(cost_of(c, "rms_norm_backward", values), 4.0 * 240 + 4 * 86, 2.0 * 240 + 4 * 40);

  const named rows = {{"ids", of(ids)}, {"table", of(x)}};
  check_bytes(cost_of(c, "embedding", rows), 4.0 * 5 + 2 * 5 * 40, 2.0 * 5 * 40);
}

TEST_CASE("the configured limits give the least time of a call") {
  live_context c(R"({"limits.f32_gflops": 100, "limits.read_gbytes": 20})");
  const std::vector<std::int64_t> shape{1000, 1000}, few{1, 1000};
  const velo_tensor a = shaped(f32, shape), half = shaped(bf16, shape), row = shaped(f32, few);
  const named square = {{"a", of(a)}, {"b", of(a)}}, narrow = {{"a", of(half)}, {"b", of(half)}};
  CHECK(cost_of(c, "matmul", square).seconds == 0);  // the rate of a copy is not known
  REQUIRE(velo_config_set(c, "limits.copy_gbytes", "12.5") == VELO_OK);
  CHECK(cost_of(c, "matmul", square).seconds == Approx(2e9 / 100e9));
  CHECK(cost_of(c, "matmul", {{"a", of(row)}, {"b", of(a)}}).seconds == Approx(4.008e6 / 12.5e9));
  CHECK(cost_of(c, "matmul", narrow).seconds == 0);
  REQUIRE(velo_config_set(c, "limits.bf16_gflops", "2e2") == VELO_OK);
  CHECK(cost_of(c, "matmul", narrow).seconds == Approx(2e9 / 200e9));
  CHECK(cost_of(c, "add", square).seconds == Approx(12e6 / 12.5e9));
  for (const char* wrong : {"-1", "", "fast", "1e30", "nan", " 1", "1 "})
    CHECK_REFUSED(velo_config_set(c, "limits.f32_gflops", wrong), VELO_ERR_ARGUMENT, "value");
}

TEST_CASE("a call without a cost is refused, and nothing is written") {
  const live_context c;
  const std::vector<std::int64_t> shape{4, 4};
  const velo_tensor a = shaped(f32, shape);
  const named good = {{"a", of(a)}, {"b", of(a)}}, unknown = {{"a", of(a)}, {"z", of(a)}};
  velo_cost cost = VELO_COST_INIT;
  cost.flops = 7;
  const auto ask = [&](velo_context context, const char* op, const named& values, velo_cost* to) {
    return velo_op_cost(context, op, values.data(), static_cast<std::int64_t>(values.size()), to);
  };
  CHECK_REFUSED(ask(nullptr, "add", good, &cost), VELO_ERR_NULL, "context");
  CHECK_REFUSED(ask(c, nullptr, good, &cost), VELO_ERR_NULL, "op");
  CHECK_REFUSED(ask(c, "adds", good, &cost), VELO_ERR_NOT_FOUND, "op");
  CHECK_REFUSED(ask(c, "add", good, nullptr), VELO_ERR_NULL, "cost");
  CHECK_REFUSED(ask(c, "add", unknown, &cost), VELO_ERR_NOT_FOUND, "args.z");
  CHECK_REFUSED(ask(c, "add", {{"a", of(a)}}, &cost), VELO_ERR_NULL, "args.b");
  CHECK(cost.flops == 7);
  cost.struct_size = 8;
  CHECK_REFUSED(ask(c, "add", good, &cost), VELO_ERR_STRUCT, "cost.struct_size");
}

TEST_CASE("a context counts its calls by operator, recomputation apart") {
  live_context c(R"({"counters": "on"})");
  float_tensor a({4, 6}), b({6, 5}), y({4, 5});
  const auto multiply = [&] {
    REQUIRE(op_call(c, "matmul", {{"a", of(a)}, {"b", of(b)}, {"c", of(y)}}) == VELO_OK);
  };
  const auto counts_of = [&](const char* op) {
    velo_op_counts counts = VELO_OP_COUNTS_INIT;
    REQUIRE(velo_op_get_counts(c, op, &counts) == VELO_OK);
    return counts;
  };
  const double flops = 2.0 * 4 * 6 * 5;
  multiply(), multiply();
  CHECK(op_call(c, "add", {{"a", of(y)}, {"b", of(y)}, {"y", of(y)}}) == VELO_OK);
  CHECK(op_call(c, "matmul", {{"a", of(a)}, {"b", of(a)}, {"c", of(y)}}) != VELO_OK);
  CHECK(counts_of("matmul").calls == 2);
  CHECK(counts_of("add").bytes_read == 2 * 4 * 20);
  CHECK(counts_of(nullptr).calls == 3);
  REQUIRE(velo_config_set(c, "counters", "recompute") == VELO_OK);
  multiply();
  REQUIRE(velo_config_set(c, "counters", "off") == VELO_OK);
  multiply();
  const velo_op_counts all = counts_of(nullptr);
  CHECK(all.calls == 4);
  CHECK(all.flops_recorded == 2 * flops);
  CHECK(all.flops_traversed == 3 * flops);
  CHECK(all.flops_visible == 3 * flops);
  CHECK(all.bytes_written == 3 * 4 * 20 + 4 * 20);
  CHECK(all.seconds > 0);
  CHECK(all.seconds < 1);
  CHECK(all.least_seconds == 0);  // no limits are set
  REQUIRE(velo_op_reset_counts(c) == VELO_OK);
  CHECK(counts_of(nullptr).calls == 0);
}

TEST_CASE("queued calls count when they are accepted, from every thread") {
  live_context c(R"({"counters": "on"})");
  float_tensor a({64}), y({64});
  const velo_stream queue = c.new_stream();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        op_call(queue, "add", {{"a", of(a)}, {"b", of(a)}, {"y", of(y)}});
    });
  for (std::thread& each : threads) each.join();
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  REQUIRE(velo_op_get_counts(c, "add", &counts) == VELO_OK);
  CHECK(counts.calls == 150);
  CHECK(counts.seconds > 0);
  counts.struct_size = 4;
  CHECK_REFUSED(velo_op_get_counts(c, "add", &counts), VELO_ERR_STRUCT, "counts.struct_size");
  CHECK_REFUSED(velo_op_get_counts(c, "adds", &counts), VELO_ERR_NOT_FOUND, "op");
  CHECK_REFUSED(velo_op_get_counts(c, "add", nullptr), VELO_ERR_NULL, "counts");
  CHECK_REFUSED(velo_op_reset_counts(nullptr), VELO_ERR_NULL, "context");
}

TEST_CASE("a timed call adds the least time that the limits allow") {
  live_context c(R"({"counters": "on", "limits.f32_gflops": 1e-3, "limits.copy_gbytes": 1e9})");
  float_tensor a({4, 6}), b({6, 5}), y({4, 5});
  for (int i = 0; i < 3; ++i)
    REQUIRE(op_call(c, "matmul", {{"a", of(a)}, {"b", of(b)}, {"c", of(y)}}) == VELO_OK);
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  REQUIRE(velo_op_get_counts(c, "matmul", &counts) == VELO_OK);
  CHECK(counts.least_seconds == Approx(3 * 2 * 4 * 6 * 5 / 1e6));
  CHECK(counts.seconds < counts.least_seconds);
}

TEST_CASE("a table without rows may have any width") {
  live_context c;
  const std::int64_t table[] = {0, std::int64_t{1} << 62}, ids[] = {0};
  const velo_tensor empty{
      nullptr, {VELO_DEVICE_CPU, 0}, 2, {VELO_DTYPE_FLOAT, 32, 1}, table, nullptr, 0};
  const velo_tensor none{nullptr, {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_INT, 64, 1}, ids, nullptr,
                         0};
  const named values = {{"table", of(empty)}, {"ids", of(none)}};
  velo_cost cost = VELO_COST_INIT;
  REQUIRE(velo_op_cost(c, "embedding", values.data(), 2, &cost) == VELO_OK);
  CHECK(cost.bytes_read == 0);
}

TEST_CASE("products of int8 have no least time, since no key has their rate") {
  live_context c(R"({"limits.f32_gflops": 100, "limits.copy_gbytes": 10})");
  const std::int64_t rows[] = {4, 32}, matrix[] = {1, 32, 8}, columns[] = {1, 8}, four[] = {4};
  const auto bytes = [](int rank, const std::int64_t* sizes) {
    return velo_tensor{nullptr, {VELO_DEVICE_CPU, 0}, rank, {VELO_DTYPE_INT, 8, 1}, sizes, nullptr,
                       0};
  };
  const velo_tensor x = bytes(2, rows), weight = bytes(3, matrix);
  velo_tensor scale = bytes(2, columns);
  scale.dtype = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_ints list = {four, 1};
  const named values = {
      {"x", of(x)}, {"weight", of(weight)}, {"scale", of(scale)}, {"group_list", of(list)}};
  velo_cost cost = VELO_COST_INIT;
  REQUIRE(velo_op_cost(c, "quant_grouped_matmul", values.data(), 4, &cost) == VELO_OK);
  CHECK(cost.flops == 2 * 4 * 32 * 8);
  CHECK(cost.seconds == 0);
}
