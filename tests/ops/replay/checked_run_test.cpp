// Check mode: a planted wrong kernel is named, right kernels pass, and the keys choose the calls.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/round_up.hpp"
#include "tests/host_memory.hpp"
#include "tests/ops/example_call.hpp"
#include "tests/ops/matmul/weight_pack.hpp"
#include "tests/ops/replay/wrong_kernel.hpp"

using namespace velo;
using namespace velo::testing;
using velo::simd::f16;

namespace {

velo_op_counts counts_of(const session& s, const char* op = nullptr) {
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  REQUIRE(velo_op_get_counts(s.context(), op, &counts) == VELO_OK);
  return counts;
}

}  // namespace

TEST_CASE("a wrong kernel is named with the element, its value and the reference's") {
  session s(1, R"({"check.mode": "all"})");
  small_add call;
  REQUIRE(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
  const call_record record = last_record();
  INFO(record);
  CHECK(record.function == "velo_add");
  CHECK(record.argument == "args.y");
  CHECK(record.expected.find("at [0, 4], by the reference") != std::string::npos);
  CHECK(record.got.find("by the kernel \"wrong\" of add; 1 of 15 elements") != std::string::npos);
  CHECK(record.cause.find("check.capsules names no folder") != std::string::npos);
  // the kernel's results are kept
  CHECK(call.y.at(4) == Approx(call.a.at(4) + call.b.at(4) + 0.25));
  CHECK(counts_of(s).calls_checked == 0);
}

TEST_CASE("a checked call that fails for lack of memory has written nothing") {
  int refused = 0, diverged = 0;
  for (int allocations = 0; diverged < 3; ++allocations) {
    INFO(allocations << " allocations succeed");
    host_memory host;
    const velo_allocator allocator = host.allocator();
    session s(1, R"({"check.mode": "all"})", &allocator);
    array<float> a({50000}), b({50000}), y({50000});
    a.fill(1), b.fill(2), y.fill(3);
    const std::vector<unsigned char> before = y.bytes();
    velo_add_args args = VELO_ADD_ARGS_INIT;
    args.a = a.tensor(), args.b = b.tensor(), args.y = y.tensor();
    host.remaining = allocations;
    const velo_status status = run_wrong_add(s, args);
    host.remaining = -1;
    status == VELO_ERR_MEMORY ? ++refused : ++diverged;
    CHECK((status == VELO_ERR_MEMORY || status == VELO_ERR_INTERNAL));
    CHECK((y.bytes() == before) == (status == VELO_ERR_MEMORY));
  }
  CHECK(refused > 0);
}

TEST_CASE("a call with a pack of experts is checked against the reference, which reads it") {
  session s(1, R"({"check.mode": "all"})");
  array<float> x({9, 70}), weight({2, 70, 50}), y({9, 50}), scale({2, 50});
  array<std::int8_t> bytes({9, 70}), integers({2, 70, 50});
  x.fill(1), weight.fill(2), scale.fill(3);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::int8_t>(i * 37);
  for (std::size_t i = 0; i < integers.size(); ++i) integers[i] = static_cast<std::int8_t>(i * 53);
  const std::int64_t ends[] = {4, 9};
  const velo_ints list{ends, 2};
  const weight_pack floats(s, *weight.tensor(), false), pack(s, *integers.tensor(), false);
  velo_grouped_matmul_args product = VELO_GROUPED_MATMUL_ARGS_INIT;
  product.x = x.tensor(), product.packed = floats, product.y = y.tensor();
  product.group_list = &list;
  VELO_RUN(velo_grouped_matmul(s.stream(), &product));
  velo_quant_grouped_matmul_args exact = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
  exact.x = bytes.tensor(), exact.packed = pack, exact.scale = scale.tensor();
  exact.y = y.tensor(), exact.group_list = &list, exact.output_dtype = VELO_QUANT_OUTPUT_FLOAT32;
  VELO_RUN(velo_quant_grouped_matmul(s.stream(), &exact));
  if (s.isa() == core::isa::scalar) return;
  CHECK(counts_of(s, "grouped_matmul").calls_checked == 1);
  CHECK(counts_of(s, "quant_grouped_matmul").calls_checked == 1);
}

TEST_CASE("a wrong kernel is found in place, where it overwrites its input") {
  session s(1, R"({"check.mode": "all"})");
  small_add call;
  call.args.y = call.args.b;
  CHECK(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
  call.args.y = call.args.a;
  CHECK(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
}

TEST_CASE("every operator's examples agree with the reference in check mode") {
  session s(2, R"({"check.mode": "all"})");
  const velo_stream queue = s.new_stream();
  std::int64_t checked = 0;
  for (const hosts::sample& sample : hosts::samples(true)) {
    if (sample.status != VELO_OK) continue;
    INFO(sample.op << " " << sample.attributes_json());
    example_call call(sample);
    VELO_RUN(call.run(s.stream()));
    const auto direct = call.result();
    call.reset();
    VELO_RUN(call.run(queue));
    VELO_RUN(velo_stream_synchronize(queue));
    CHECK(call.result() == direct);
    example_call plain(sample);
    session unchecked(2);
    VELO_RUN(plain.run(unchecked.stream()));
    CHECK(plain.result() == direct);
    ++checked;
  }
  const velo_op_counts all = counts_of(s);
  if (s.isa() > core::isa::scalar) CHECK(all.calls_checked > checked);
  CHECK(all.calls == 0);  // the key `counters` is off
  CHECK(counts_of(s, "add").calls_not_judged == 0);
}

TEST_CASE("inputs beyond the operator's bound are not judged") {
  session s(1, R"({"check.mode": "all"})");
  small_add call;
  call.a[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(run_wrong_add(s, call.args) == VELO_OK);
  call.a[3] = std::numeric_limits<float>::infinity();
  CHECK(run_wrong_add(s, call.args) == VELO_OK);
  CHECK(counts_of(s, "add").calls_not_judged == 2);
  REQUIRE(velo_op_reset_counts(s.context()) == VELO_OK);
  CHECK(counts_of(s, "add").calls_not_judged == 0);
}

TEST_CASE("a pack with weights beyond the operator's bound is not judged") {
  session s(1, R"({"check.mode": "all"})");
  if (s.isa() == core::isa::scalar) return;
  array<float> a({4, 70}), b({70, 50}), c({4, 50});
  a.fill(1), b.fill(2);
  const auto run = [&] {
    const weight_pack pack(s, *b.tensor(), false);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = a.tensor(), args.packed = pack, args.c = c.tensor();
    VELO_RUN(velo_matmul(s.stream(), &args));
    return counts_of(s, "matmul");
  };
  CHECK(run().calls_checked == 1);
  b[69 * 50 + 49] = 1e-40F;
  CHECK(run().calls_not_judged == 1);
  b[69 * 50 + 49] = std::numeric_limits<float>::infinity();
  CHECK(run().calls_not_judged == 2);
}

TEST_CASE("what an output held before a call matters where the call adds to it alone") {
  session s(1, R"({"check.mode": "all"})");
  if (s.isa() == core::isa::scalar) return;
  array<float> a({4, 70}), b({70, 50}), c({4, 50});
  a.fill(1), b.fill(2);
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.c = c.tensor();
  c[7] = std::numeric_limits<float>::quiet_NaN();
  VELO_RUN(velo_matmul(s.stream(), &args));
  CHECK(counts_of(s, "matmul").calls_checked == 1);
  c[7] = std::numeric_limits<float>::quiet_NaN();
  args.accumulate = 1;
  VELO_RUN(velo_matmul(s.stream(), &args));
  CHECK(counts_of(s, "matmul").calls_not_judged == 1);
}

TEST_CASE("outputs of float16 that overflow show no magnitudes, and large terms agree") {
  session s(1, R"({"check.mode": "all"})");
  if (s.isa() == core::isa::scalar) return;
  // 32 products of about 1e9, their negatives, and one of 50
  array<f16> a({1, 65}), b({65, 1}), c({1, 1});
  for (std::size_t i = 0; i < 65; ++i) {
    const auto k = static_cast<float>(i % 32);
    a[i] = simd::to_f16(i == 64 ? 5.0F : i < 32 ? 30000 + 7 * k : -30000 - 7 * k);
    b[i] = simd::to_f16(i == 64 ? 10.0F : 31000 + 11 * k);
  }
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.c = c.tensor();
  VELO_RUN(velo_matmul(s.stream(), &args));
  CHECK(counts_of(s, "matmul").calls_checked == 1);
  a[40] = simd::to_f16(0.0F);
  VELO_RUN(velo_matmul(s.stream(), &args));  // infinite
  CHECK(counts_of(s, "matmul").calls_checked == 1);
  CHECK(counts_of(s, "matmul").calls_not_judged == 1);
}

TEST_CASE("a largest score that cancels to nearly 0 agrees within the rounding of its products") {
  session s(1, R"({"check.mode": "all"})");
  constexpr std::size_t rows = 64, d = 64, half = d / 2;
  array<simd::bf16> q{{rows, 1, 1, d}}, k{{rows, 1, 1, d}}, v{{rows, 1, 1, d}};
  array<simd::bf16> out{{rows, 1, 1, d}};
  array<float> largest{{rows, 1, 1}}, total{{rows, 1, 1}};
  v.fill(1);
  for (std::size_t at = 0; at < rows * d; at += d) {
    for (std::size_t i = 0; i + 1 < half; ++i) {  // every product and its negative, elsewhere
      const std::size_t here = at + i, opposite = at + half + (i * 5) % (half - 1);
      q[here] = q[opposite] = simd::to_bf16(0.5f + 0.01f * static_cast<float>((at + i * 13) % 97));
      k[here] = simd::to_bf16(1.5f - 0.01f * static_cast<float>((at + i * 3) % 89));
      k[opposite] = simd::to_bf16(-simd::to_float(k[here]));
    }
    q[at + half - 1] = k[at + half - 1] = simd::to_bf16(0x1p-8f);
    q[at + d - 1] = k[at + d - 1] = simd::to_bf16(0);
  }
  velo_fusion_attention_args args = VELO_FUSION_ATTENTION_ARGS_INIT;
  args.query = q.tensor(), args.key = k.tensor(), args.value = v.tensor();
  args.attention_out = out.tensor();
  args.softmax_max = largest.tensor(), args.softmax_sum = total.tensor();
  VELO_RUN(velo_fusion_attention(s.stream(), &args));
  CHECK(counts_of(s, "fusion_attention").calls_checked == 1);
}

TEST_CASE("a sample has its share of the calls, the same ones in every run") {
  const auto checked = [](const char* share) {
    session s(1, std::string(R"({"check.mode": "sample", "check.share": )") + share + "}");
    small_add call;
    for (int i = 0; i < 2000; ++i) VELO_RUN(velo_add(s.stream(), &call.args));
    return counts_of(s, "add").calls_checked;
  };
  if (session().isa() == core::isa::scalar) return;
  CHECK(checked("0") == 0);
  CHECK(checked("1") == 2000);
  const std::int64_t quarter = checked("0.25");
  CHECK(std::abs(static_cast<double>(quarter) - 500) < 60);
  CHECK(checked("0.25") == quarter);
}

TEST_CASE("the reference itself is not checked") {
  session s(1, R"({"check.mode": "all", "level": 0})");
  small_add call;
  VELO_RUN(velo_add(s.stream(), &call.args));
  CHECK(counts_of(s).calls_checked == 0);
  CHECK(counts_of(s).calls_not_judged == 0);
}

TEST_CASE("a checked call without memory for its copies is refused before it writes") {
  struct limited {
    bool refuses = false;
    static void* allocate(void* user, std::uint64_t bytes, std::uint64_t alignment,
                          const velo_device*, void*) {
      const bool refuses = static_cast<limited*>(user)->refuses;
      return refuses ? nullptr : std::aligned_alloc(alignment, core::round_up(bytes, alignment));
    }
    static void deallocate(void*, void* memory, std::uint64_t, const velo_device*, void*) {
      std::free(memory);
    }
  } memory;
  velo_allocator allocator = VELO_ALLOCATOR_INIT;
  allocator.user = &memory;
  allocator.allocate = &limited::allocate;
  allocator.deallocate = &limited::deallocate;
  velo_context_desc desc = context_desc(1, &allocator);
  desc.config_json = R"({"check.mode": "all"})";
  live_context context(desc);
  small_add call;
  const auto before = call.y.bytes();
  memory.refuses = true;
  CHECK(velo_add(context.inline_stream(), &call.args) == VELO_ERR_MEMORY);
  CHECK(call.y.bytes() == before);
  memory.refuses = false;
  VELO_RUN(velo_add(context.inline_stream(), &call.args));
}
