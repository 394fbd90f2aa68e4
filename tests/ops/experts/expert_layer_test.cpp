// A layer of experts whole, of the operators that it is made of: the loss, the counts and the norms
// of every gradient are those of reference/parallel.md, section 5, which torch computed in double.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t tokens = 16, hidden = 6, inner = 8, experts = 4, chosen = 2,
                       rows = tokens * chosen;

double norm_of(const array<float>& x, std::size_t row = 1, std::size_t first = 0,
               std::size_t count = 1) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i % row >= first && i % row < first + count) sum += x.at(i) * x.at(i);
  return std::sqrt(sum);
}

class layer {
 public:
  layer() {
    const auto number = [](std::size_t i) { return static_cast<double>(i); };
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(std::sin(0.37 * std::pow(number(i), 1.2) + 2));
    for (std::size_t i = 0; i < experts * hidden * inner; ++i) {
      const std::size_t at = i / inner * 2 * inner + i % inner;
      gate_up[at] = static_cast<float>(0.5 * std::sin(0.37 * std::pow(number(i), 1.2) + 3));
      gate_up[at + inner] = static_cast<float>(0.5 * std::cos(0.21 * number(i)));
      down[i] = static_cast<float>(0.5 * std::cos(0.53 * number(i)));
    }
    for (std::size_t i = 0; i < router.size(); ++i)
      router[i] = static_cast<float>(std::sin(0.9 * number(i) + 0.4));
  }

  double forward(velo_stream s) {
    multiply(s, x, router, logits, false, false);
    velo_topk_router_args route = VELO_TOPK_ROUTER_ARGS_INIT;
    route.logits = logits.tensor(), route.weights = weights.tensor();
    route.indices = indices.tensor(), route.counts = counts.tensor();
    route.aux_loss = balance.tensor(), route.z_loss = z.tensor();
    VELO_RUN(velo_topk_router(s, &route));
    velo_moe_token_permute_args permute = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
    permute.tokens = x.tensor(), permute.indices = indices.tensor();
    permute.permuted = permuted.tensor(), permute.sorted_indices = places.tensor();
    permute.num_experts = experts;
    VELO_RUN(velo_moe_token_permute(s, &permute));
    multiply_groups(s, permuted, gate_up, gates);
    velo_swiglu_args act = VELO_SWIGLU_ARGS_INIT;
    act.x = gates.tensor(), act.y = gated.tensor();
    VELO_RUN(velo_swiglu(s, &act));
    multiply_groups(s, gated, down, out);
    velo_moe_token_unpermute_args unpermute = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
    unpermute.permuted = out.tensor(), unpermute.sorted_indices = places.tensor();
    unpermute.probs = weights.tensor(), unpermute.tokens = y.tensor();
    VELO_RUN(velo_moe_token_unpermute(s, &unpermute));
    const double mean = norm_of(y) * norm_of(y) / static_cast<double>(y.size());
    return mean + 0.01 * balance.at(0) + 0.001 * z.at(0);
  }

  void backward(velo_stream s) {
    for (std::size_t i = 0; i < y.size(); ++i) dy[i] = 2 * y[i] / static_cast<float>(y.size());
    velo_moe_token_unpermute_backward_args back = VELO_MOE_TOKEN_UNPERMUTE_BACKWARD_ARGS_INIT;
    back.dy = dy.tensor(), back.permuted = out.tensor(), back.sorted_indices = places.tensor();
    back.probs = weights.tensor(), back.dpermuted = dout.tensor(), back.dprobs = dweights.tensor();
    VELO_RUN(velo_moe_token_unpermute_backward(s, &back));
    groups_backward(s, dout, gated, down, dgated, ddown);
    velo_swiglu_backward_args act = VELO_SWIGLU_BACKWARD_ARGS_INIT;
    act.dy = dgated.tensor(), act.x = gates.tensor(), act.dx = dgates.tensor();
    VELO_RUN(velo_swiglu_backward(s, &act));
    groups_backward(s, dgates, permuted, gate_up, dpermuted, dgate_up);
    velo_moe_token_permute_backward_args permute = VELO_MOE_TOKEN_PERMUTE_BACKWARD_ARGS_INIT;
    permute.dpermuted = dpermuted.tensor(), permute.sorted_indices = places.tensor();
    permute.dtokens = dx.tensor(), permute.tokens = tokens;
    VELO_RUN(velo_moe_token_permute_backward(s, &permute));
    route_backward(s);
  }

  array<float> x{{tokens, hidden}}, router{{hidden, experts}},
      gate_up{{experts, hidden, 2 * inner}}, down{{experts, inner, hidden}};
  array<float> y{{tokens, hidden}}, dx{{tokens, hidden}}, drouter{{hidden, experts}},
      dgate_up{{experts, hidden, 2 * inner}}, ddown{{experts, inner, hidden}};
  array<std::int64_t> counts{{experts}};

 private:
  void multiply(velo_stream s, array<float>& a, array<float>& b, array<float>& c, bool left,
                bool right) {
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = a.tensor(), args.b = b.tensor(), args.c = c.tensor();
    args.transpose_a = left, args.transpose_b = right;
    VELO_RUN(velo_matmul(s, &args));
  }
  void multiply_groups(velo_stream s, array<float>& from, array<float>& weight, array<float>& to) {
    velo_grouped_matmul_args args = VELO_GROUPED_MATMUL_ARGS_INIT;
    args.x = from.tensor(), args.weight = weight.tensor(), args.y = to.tensor();
    args.group_list_tensor = counts.tensor(), args.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
    VELO_RUN(velo_grouped_matmul(s, &args));
  }
  void groups_backward(velo_stream s, array<float>& dto, array<float>& from, array<float>& weight,
                       array<float>& dfrom, array<float>& dweight) {
    velo_grouped_matmul_backward_args args = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
    args.dy = dto.tensor(), args.x = from.tensor(), args.weight = weight.tensor();
    args.dx = dfrom.tensor(), args.dweight = dweight.tensor();
    args.group_list_tensor = counts.tensor(), args.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
    VELO_RUN(velo_grouped_matmul_backward(s, &args));
  }
  void route_backward(velo_stream s) {
    array<float> dbalance({}), dz({}), dlogits({tokens, experts}), through({tokens, hidden});
    dbalance[0] = 0.01F, dz[0] = 0.001F;
    velo_topk_router_backward_args args = VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT;
    args.logits = logits.tensor(), args.indices = indices.tensor(), args.counts = counts.tensor();
    args.dweights = dweights.tensor(), args.dlogits = dlogits.tensor();
    args.daux_loss = dbalance.tensor(), args.dz_loss = dz.tensor();
    VELO_RUN(velo_topk_router_backward(s, &args));
    multiply(s, dlogits, router, through, false, true);
    multiply(s, x, dlogits, drouter, true, false);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += through[i];
  }

  array<float> logits{{tokens, experts}}, weights{{tokens, chosen}}, dweights{{tokens, chosen}},
      balance{{}}, z{{}}, permuted{{rows, hidden}}, dpermuted{{rows, hidden}},
      gates{{rows, 2 * inner}}, dgates{{rows, 2 * inner}}, gated{{rows, inner}},
      dgated{{rows, inner}}, out{{rows, hidden}}, dout{{rows, hidden}}, dy{{tokens, hidden}};
  array<std::int32_t> indices{{tokens, chosen}}, places{{rows}};
};

}  // namespace

TEST_CASE("a layer of experts has the published loss, and gradients of the published norms") {
  for (const char* level : {R"({"level": 0})", R"({"level": 1})", R"({"level": 2})"}) {
    INFO(level);
    session s(1, level);
    layer one;
    CHECK(one.forward(s.stream()) == Approx(0.014194323565).epsilon(1e-6));
    const std::int64_t counts[] = {5, 13, 11, 3};
    for (std::size_t e = 0; e < 4; ++e) CHECK(one.counts[e] == counts[e]);
    CHECK(norm_of(one.y) == Approx(0.182939905).epsilon(1e-6));
    one.backward(s.stream());
    CHECK(norm_of(one.dx) == Approx(1.755442e-3).epsilon(2e-6));
    CHECK(norm_of(one.dgate_up, 2 * inner, 0, inner) == Approx(1.195126e-2).epsilon(2e-6));
    CHECK(norm_of(one.dgate_up, 2 * inner, inner, inner) == Approx(3.347204e-3).epsilon(2e-6));
    CHECK(norm_of(one.ddown) == Approx(1.697228e-3).epsilon(2e-6));
    CHECK(norm_of(one.drouter) == Approx(3.020698e-3).epsilon(2e-6));
  }
}
