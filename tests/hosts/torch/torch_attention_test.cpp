// velo in the place of torch's flash attention, by a host that plays torch: what is taken gives
// velo's numbers, everything else goes to torch's own kernel, and torch gets everything back.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "library.hpp"
#include "second_copy.hpp"
#include "tests/child_process.hpp"
#include "tests/context.hpp"
#include "tests/tensors.hpp"
#include "torch_host.hpp"
#include "velo/ops_attention.h"

using namespace hosts;
using Catch::Matchers::StartsWith;
using velo::testing::bf16;
using velo::testing::f16;
using velo::testing::f32;
using values = std::map<std::string, torch::value>;

namespace {

const std::string forward = "aten::_scaled_dot_product_flash_attention_for_cpu",
                  backward = forward + "_backward";
constexpr int batch = 2, heads = 4, key_heads = 2, rows = 64, keys = 96, size = 8;

const library& adapters() {
  static const library opened(VELO_ADAPTERS, RTLD_NOW | RTLD_LOCAL);
  return opened;
}

velo_status replace(bool with) {
  static const auto set =
      adapters().function<decltype(velo_torch_attention)>("velo_torch_attention");
  return set(with ? 1 : 0);
}

std::uint64_t calls() {
  std::uint64_t count = 0;
  const auto ask =
      adapters().function<decltype(velo_torch_attention_calls)>("velo_torch_attention_calls");
  REQUIRE(ask(&count) == VELO_OK);
  CHECK(ask(nullptr) == VELO_ERR_NULL);
  return count;
}

// velo's kernels for as long as it lives.
struct replaced {
  replaced() {
    adapters().function<decltype(velo_torch_register)>("velo_torch_register")();
    REQUIRE(replace(true) == VELO_OK);
  }
  ~replaced() { replace(false); }
  replaced(const replaced&) = delete;
  replaced& operator=(const replaced&) = delete;
};

array numbers(const velo_dtype& dtype, const std::vector<std::int64_t>& shape, int seed) {
  array out = filled(dtype, shape, 0);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const float value = static_cast<float>((i * 7 + seed * 13) % 29) / 29 - 0.5F;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (dtype.bits == 32)
      std::memcpy(&out.bytes[static_cast<std::size_t>(4 * i)], &bits, 4);
    else
      bits >>= 16, std::memcpy(&out.bytes[static_cast<std::size_t>(2 * i)], &bits, 2);
  }
  return out;
}

// Tensors of one attention, and a call of torch's on them.
struct attention {
  array q, k, v, dy, out, lse;
  values given;

  explicit attention(const velo_dtype& dtype = f32, std::int64_t count = rows)
      : q(numbers(dtype, {batch, heads, count, size}, 1)),
        k(numbers(dtype, {batch, key_heads, keys, size}, 2)),
        v(numbers(dtype, {batch, key_heads, keys, size}, 3)),
        dy(numbers(dtype, {batch, heads, count, size}, 4)) {
    given = {{"query", q}, {"key", k}, {"value", v}};
  }
  std::vector<array> run() const { return torch::call(forward, given); }

  // The gradient's call, from the results of run().
  values of_backward(const std::vector<array>& results) {
    out = results[0], lse = results[1];
    values all = given;
    all["grad_out"] = dy, all["out"] = out, all["logsumexp"] = lse;
    all["dropout_p"] = 0.0;
    all["is_causal"] = given.count("is_causal") != 0 && given["is_causal"].integer != 0;
    return all;
  }
};

bool by_torch(const std::vector<array>& results) {
  for (const array& one : results) {
    for (const unsigned char byte : one.bytes) {
      if (byte != 7) return false;
    }
  }
  return true;
}

velo_stream stream() {
  static const velo::testing::live_context context;
  return context.inline_stream();
}

template <class Args>
void fill(Args& args, const velo_tensor& q, const velo_tensor& k, const velo_tensor& v,
          double scale, bool causal) {
  args.query = &q, args.key = &k, args.value = &v;
  args.layout = VELO_ATTENTION_LAYOUT_BNSD;
  args.scale = scale;
  args.sparse_mode =
      causal ? VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL : VELO_ATTENTION_SPARSE_MODE_FULL;
}

// velo's own results: attention, log-sum-exp, and the gradients from them.
struct plain {
  array out, lse, ones, dq, dk, dv;

  plain(const attention& of, double scale, bool causal)
      : out(of.q), lse(filled(f32, {batch, heads, of.q.shape[2]}, 0)), ones(lse) {
    const velo_tensor q = of.q.view(), k = of.k.view(), v = of.v.view(), dy = of.dy.view();
    const velo_tensor y = out.view(), top = lse.view(), sum = ones.view();
    velo_fusion_attention_args args = VELO_FUSION_ATTENTION_ARGS_INIT;
    fill(args, q, k, v, scale, causal);
    args.attention_out = &y, args.softmax_max = &top, args.softmax_sum = &sum;
    REQUIRE(velo_fusion_attention(stream(), &args) == VELO_OK);
    for (std::int64_t i = 0; i < lse.count(); ++i) {
      auto* at = static_cast<float*>(top.data) + i;
      auto* total = static_cast<float*>(sum.data) + i;
      *at += std::log(*total), *total = 1;
    }
    dq = of.q, dk = of.k, dv = of.v;
    const velo_tensor gq = dq.view(), gk = dk.view(), gv = dv.view();
    velo_fusion_attention_backward_args back = VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT;
    fill(back, q, k, v, scale, causal);
    back.dy = &dy, back.softmax_max = &top, back.softmax_sum = &sum, back.attention_out = &y;
    back.dquery = &gq, back.dkey = &gk, back.dvalue = &gv;
    REQUIRE(velo_fusion_attention_backward(stream(), &back) == VELO_OK);
  }
};

}  // namespace

TEST_CASE("kernels are put in once and taken out, and one that torch refuses leaves nothing") {
  { const replaced first; }
  const std::size_t before = torch::kernels_of(forward);
  for (long n = 0;; ++n) {
    torch::fail_after(n);
    const velo_status status = replace(true);
    const bool failed = torch::calls_left() < 0;
    torch::fail_after(-1);
    if (!failed) break;
    CHECK(status == VELO_ERR_STATE);
    CHECK_THAT(last_error(adapters()), StartsWith("velo_torch_attention: torch: expected it to"));
    CHECK(torch::kernels_of(forward) + torch::kernels_of(backward) == 2 * before);
  }
  CHECK(replace(true) == VELO_OK);
  CHECK(torch::kernels_of(forward) == before + 1);
  CHECK(torch::kernels_of(backward) == before + 1);
  CHECK(replace(false) == VELO_OK);
  CHECK(replace(false) == VELO_OK);
  CHECK(torch::kernels_of(forward) + torch::kernels_of(backward) == 2 * before);
}

TEST_CASE("attention of torch's has velo's numbers, forward and backward") {
  const replaced now;
  for (const velo_dtype& dtype : {f32, bf16, f16}) {
    for (const bool causal : {false, true}) {
      for (const double scale : {0.0, 0.5}) {
        attention call(dtype);
        if (causal) call.given["is_causal"] = true;
        if (scale != 0) call.given["scale"] = scale;
        const plain wanted(call, scale != 0 ? scale : 1 / std::sqrt(double{size}), causal);
        const torch::books before = torch::count();
        const std::uint64_t counted = calls();
        const long own = torch::own_attentions();
        const auto results = call.run();
        CHECK(results[0].bytes == wanted.out.bytes);
        CHECK(results[1].bytes == wanted.lse.bytes);
        CHECK(results[1].shape == wanted.lse.shape);
        const auto gradients = torch::call(backward, call.of_backward(results));
        CHECK(gradients[0].bytes == wanted.dq.bytes);
        CHECK(gradients[1].bytes == wanted.dk.bytes);
        CHECK(gradients[2].bytes == wanted.dv.bytes);
        CHECK(torch::count() == before);
        CHECK(calls() == counted + 1);
        CHECK(torch::own_attentions() == own);
      }
    }
  }
}

TEST_CASE("a mask that is added reaches velo's attention") {
  const replaced now;
  attention masked;
  array mask = numbers(f32, {rows, keys}, 5);
  masked.given["attn_mask"] = mask;
  const std::uint64_t counted = calls();
  const torch::books before = torch::count();
  const auto results = masked.run();
  CHECK_FALSE(by_torch(results));
  CHECK(calls() == counted + 1);
  CHECK(torch::count() == before);
}

TEST_CASE("what velo does not take or what is too small goes to torch's own attention") {
  const replaced now;
  const std::uint64_t counted = calls();
  attention few(f32, 4), few_bf16(bf16, 4), dropped, narrow, empty(f32, 0), mixed, turned;
  dropped.given["dropout_p"] = 0.5;
  narrow.v = numbers(f32, {batch, key_heads, keys, size / 2}, 6);
  narrow.given["value"] = narrow.v;
  mixed.k = numbers(bf16, mixed.k.shape, 2);
  mixed.given["key"] = mixed.k;
  turned.given["query"].strides = {heads * rows * size, rows * size, 1, rows};
  for (attention* call : {&few, &few_bf16, &dropped, &narrow, &empty, &mixed, &turned}) {
    const torch::books before = torch::count();
    const long own = torch::own_attentions();
    const auto results = call->run();
    CHECK(by_torch(results));
    CHECK(torch::own_attentions() == own + 1);
    if (call != &dropped) CHECK(by_torch(torch::call(backward, call->of_backward(results))));
    CHECK(torch::count() == before);
  }
  CHECK(calls() == counted);
  attention call;
  values all = call.of_backward(call.run());
  all["grad_out"].strides = {0, 0, 0, 0};  // of a sum
  CHECK(by_torch(torch::call(backward, all)));
}

TEST_CASE("whichever function of torch's fails in attention, everything is given back") {
  const replaced now;
  attention call;
  const auto results = call.run();
  values all = call.of_backward(results);
  for (const std::string& name : {forward, backward}) {
    int failures = 0;
    for (long n = 0;; ++n) {
      const torch::books before = torch::count();
      torch::fail_after(n);
      try {
        torch::call(name, name == forward ? call.given : all);
      } catch (const std::runtime_error&) {
      }
      const bool failed = torch::calls_left() < 0;
      torch::fail_after(-1);
      CHECK(torch::count() == before);
      if (!failed) break;
      ++failures;
    }
    CHECK(failures > 10);
  }
  attention small(f32, 4);
  torch::fail_after(15);  // the last one: torch's own kernel
  CHECK_THROWS_WITH(small.run(),
                    Catch::Contains("reported by torch") || Catch::Contains("it is on stderr"));
}

TEST_CASE("in a forked child attention is torch's own") {
  const replaced now;
  const attention call;
  REQUIRE_FALSE(by_torch(call.run()));
  CHECK(velo::testing::holds_in_child([&] { return by_torch(call.run()); }));
}

TEST_CASE("a second velo of the process leaves attention to the first") {
  const replaced now;
  const second_copy copy;
  const std::size_t before = torch::kernels_of(forward);
  const library second(copy.path(), RTLD_NOW | RTLD_LOCAL);
  second.function<decltype(velo_torch_register)>("velo_torch_register")();
  const auto other = second.function<decltype(velo_torch_attention)>("velo_torch_attention");
  CHECK(other(1) == VELO_ERR_STATE);
  CHECK_THAT(last_error(second),
             StartsWith("velo_torch_attention: torch: expected velo_torch_register() before"));
  CHECK(other(0) == VELO_ERR_STATE);
  CHECK(torch::kernels_of(forward) == before);
  CHECK_FALSE(by_torch(attention().run()));
}
