// velo_op_cost of the operators of parallel layers: products of this rank alone, tensors once, and
// for attention the cells that the sequence plan gives this rank.
#include "capi/values.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/context/described_plan.hpp"

using namespace velo::testing;

namespace {

// A tensor without memory: costs ask for shapes alone.
struct shaped {
  std::vector<std::int64_t> shape;
  velo_tensor view;
  shaped(velo_dtype dtype, std::vector<std::int64_t> sizes)
      : shape(std::move(sizes)),
        view(view_of(nullptr, dtype, shape.data(), static_cast<std::int32_t>(shape.size()))) {}
  shaped(const shaped&) = delete;
  double bytes() const {
    const std::int64_t element_bytes = view.dtype.bits / 8;
    auto all = static_cast<double>(element_bytes);
    for (const std::int64_t size : shape) all *= static_cast<double>(size);
    return all;
  }
};

velo_cost cost_of(velo_context context, const char* op, const named& values) {
  velo_cost cost = VELO_COST_INIT;
  const call_record found = record_of(
      velo_op_cost(context, op, values.data(), static_cast<std::int64_t>(values.size()), &cost));
  INFO(op << ": " << found);
  REQUIRE(found.code == VELO_OK);
  CHECK(cost.flops_visible <= cost.flops);
  return cost;
}

void check_cost(const velo_cost& cost, double flops, double read, double written) {
  CHECK(cost.flops == flops);
  CHECK(cost.flops_visible == flops);
  CHECK(cost.bytes_read == read);
  CHECK(cost.bytes_written == written);
}

// Of the call's outputs.
std::vector<velo_shape> shapes_of(velo_context context, const char* op, const named& values) {
  std::vector<velo_shape> all(4, velo_shape VELO_SHAPE_INIT);
  std::int64_t count = 0;
  REQUIRE(velo_op_infer(context, op, values.data(), static_cast<std::int64_t>(values.size()),
                        all.data(), 4, &count) == VELO_OK);
  return all;
}

named with(named first, const named& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

constexpr std::int64_t m = 6, n = 10, k = 8;  // rows of all ranks, and a rank's weight
constexpr double products = 2.0 * m * n * k;

}  // namespace

TEST_CASE("cut linear layers cost a product of all rows and this rank's weight, forward and back") {
  const local_ranks ranks(2);
  const velo_context c = ranks.context(1);
  const named in_group = {{"group", handle(ranks.group(1))}};
  const shaped rows(bf16, {m, k}), part(bf16, {m / 2, k}), weight(bf16, {n, k}), bias(bf16, {n}),
      out(bf16, {m, n}), out_part(bf16, {m / 2, n}), dweight(f32, {n, k}), dbias(f32, {n});
  const auto column = [&](const shaped& x, std::int64_t parallel) {
    return cost_of(c, "column_parallel_linear",
                   with(in_group, {{"x", of(x.view)},
                                   {"weight", of(weight.view)},
                                   {"bias", of(bias.view)},
                                   {"sequence_parallel", integer(parallel)}}));
  };
  check_cost(column(rows, 0), products, rows.bytes() + weight.bytes() + bias.bytes(), out.bytes());
  check_cost(column(part, 1), products, part.bytes() + weight.bytes() + bias.bytes(), out.bytes());
  const auto row = [&](std::int64_t parallel) {
    return cost_of(c, "row_parallel_linear",
                   with(in_group, {{"x", of(rows.view)},
                                   {"weight", of(weight.view)},
                                   {"sequence_parallel", integer(parallel)}}));
  };
  check_cost(row(0), products, rows.bytes() + weight.bytes(), out.bytes());
  check_cost(row(1), products, rows.bytes() + weight.bytes(), out_part.bytes());

  // Gradients: a product each for dx and dweight.
  const named column_back = with(in_group, {{"dy", of(out.view)},
                                            {"x", of(part.view)},
                                            {"weight", of(weight.view)},
                                            {"sequence_parallel", integer(1)}}),
              row_back = with(in_group, {{"dy", of(out_part.view)},
                                         {"x", of(rows.view)},
                                         {"weight", of(weight.view)},
                                         {"sequence_parallel", integer(1)}});
  const struct {
    const char* op;
    const named& values;
    const shaped &dx, &x, &dy;
  } layers[] = {{"column_parallel_linear_backward", column_back, part, part, out},
                {"row_parallel_linear_backward", row_back, rows, rows, out_part}};
  for (const auto& one : layers) {
    const double read = one.dy.bytes() + one.x.bytes() + weight.bytes();
    const named dx = {{"dx", of(one.dx.view)}}, dw = {{"dweight", of(dweight.view)}};
    check_cost(cost_of(c, one.op, with(one.values, dx)), products, read, one.dx.bytes());
    check_cost(cost_of(c, one.op, with(one.values, dw)), products, read, dweight.bytes());
    check_cost(cost_of(c, one.op, with(with(one.values, dx), dw)), 2 * products, read,
               one.dx.bytes() + dweight.bytes());
  }
}

TEST_CASE("products beside a collective cost what this rank multiplies") {
  const two_groups all(2);
  const local_ranks& ranks = all.ranks;
  const velo_context c = ranks.context(0);
  const shaped rows(bf16, {m, k}), part(bf16, {m / 2, k}), weight(bf16, {k, n}), out(bf16, {m, n}),
      out_part(bf16, {m / 2, n}), gamma(bf16, {n});
  const auto cost = [&](const char* op, const shaped& x, const named& more) {
    return cost_of(c, op, with(more, {{"x", of(x.view)}, {"weight", of(weight.view)}}));
  };
  const named group = {{"group", handle(ranks.group(0))}},
              two = {{"gather_group", handle(ranks.group(0))},
                     {"scatter_group", handle(all.second(0))}};
  check_cost(cost("matmul_all_reduce", rows, group), products, rows.bytes() + weight.bytes(),
             out.bytes());
  check_cost(cost("matmul_reduce_scatter", rows, group), products, rows.bytes() + weight.bytes(),
             out_part.bytes());
  const velo_cost gathers = cost("all_gather_matmul", part, group),
                  both = cost("all_gather_matmul_reduce_scatter", part, two);
  CHECK(gathers.flops == products);
  CHECK(both.flops == products);
  CHECK(both.bytes_read == part.bytes() + weight.bytes());
  CHECK(gathers.bytes_written - both.bytes_written == out.bytes() - out_part.bytes());
  const velo_cost norm = cost("matmul_all_reduce_add_rms_norm", rows,
                              with(group, {{"residual", of(out.view)}, {"gamma", of(gamma.view)}}));
  CHECK(norm.flops == products);
  CHECK(norm.bytes_read == rows.bytes() + weight.bytes() + out.bytes() + gamma.bytes());
}

TEST_CASE("losses, norms, embeddings and exchanges cost the bytes of their tensors") {
  const local_ranks ranks(2);
  const velo_context c = ranks.context(0);
  const named group = {{"group", handle(ranks.group(0))}};
  const auto cost = [&](const char* op, const named& more) {
    const velo_cost found = cost_of(c, op, with(group, more));
    CHECK(found.flops == 0);
    return found;
  };
  const shaped logits(bf16, {m, n}), targets(i64, {m}), floats(f32, {m}), gain(bf16, {n}),
      moments(f32, {m, 1}), dgain(f32, {n});
  const velo_cost loss = cost("vocab_parallel_cross_entropy",
                              {{"logits", of(logits.view)}, {"targets", of(targets.view)}});
  CHECK(loss.bytes_read == logits.bytes() + targets.bytes());
  CHECK(loss.bytes_written >= floats.bytes());
  check_cost(cost("vocab_parallel_cross_entropy_backward", {{"dloss", of(floats.view)},
                                                            {"logits", of(logits.view)},
                                                            {"targets", of(targets.view)},
                                                            {"lse", of(floats.view)}}),
             0, logits.bytes() + targets.bytes() + 2 * floats.bytes(), logits.bytes());
  CHECK(cost("parallel_rms_norm", {{"x", of(logits.view)}, {"gamma", of(gain.view)}}).bytes_read ==
        logits.bytes() + gain.bytes());
  const named back = {{"dy", of(logits.view)},
                      {"x", of(logits.view)},
                      {"gamma", of(gain.view)},
                      {"rstd", of(moments.view)},
                      {"dgamma", of(dgain.view)}};
  const velo_cost fresh = cost("parallel_rms_norm_backward", back),
                  added =
                      cost("parallel_rms_norm_backward", with(back, {{"accumulate", integer(1)}}));
  check_cost(fresh, 0, 2 * logits.bytes() + gain.bytes() + moments.bytes(),
             logits.bytes() + dgain.bytes());
  CHECK(added.bytes_read - fresh.bytes_read == dgain.bytes());

  // Rows that are used, not the table; both ranks look up half of them.
  const shaped table(bf16, {1000, n}), indices(i64, {m});
  const velo_cost rows =
      cost("vocab_parallel_embedding", {{"indices", of(indices.view)}, {"weight", of(table.view)}});
  CHECK(rows.bytes_read < table.bytes());
  CHECK(rows.bytes_written == logits.bytes());
  const shaped heads(bf16, {m, 4, 8});
  check_cost(cost("sequence_all_to_all", {{"x", of(heads.view)}}), 0, heads.bytes(), heads.bytes());
}

TEST_CASE("attention of a cut sequence costs the cells that its plan gives a rank") {
  constexpr std::int64_t sequence = 60, heads = 8, keys = 4, d = 16;
  for (const velo_sequence_kind kind :
       {VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_RING, VELO_SEQUENCE_HYBRID, VELO_SEQUENCE_ALL_GATHER,
        VELO_SEQUENCE_ADAPTIVE}) {
    INFO("kind " << kind);
    const local_ranks ranks(4);
    velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
    desc.kind = kind, desc.cp = 4, desc.sequence = sequence, desc.element_bytes = 4;
    desc.heads = heads, desc.kv_heads = keys, desc.head_dim = d;
    if (kind == VELO_SEQUENCE_HYBRID) desc.ulysses = 2;
    const described_plan plan(desc);
    double visible = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const auto rows = static_cast<std::int64_t>(plan.held(rank).size());
      const shaped q(f32, {2, rows, heads, d}), kv(f32, {2, rows, keys, d});
      const named values = {{"group", handle(ranks.group(rank))},
                            {"plan", handle(static_cast<velo_sequence_plan>(plan))},
                            {"query", of(q.view)},
                            {"key", of(kv.view)},
                            {"value", of(kv.view)}};
      const velo_cost forward = cost_of(ranks.context(rank), "context_parallel_attention", values);
      std::int64_t cells = 0, again = 0;
      for (std::int64_t step = 0; step < plan.info().forward_steps; ++step)
        cells += plan.step(VELO_SEQUENCE_FORWARD, rank, step).cells;
      for (std::int64_t step = 0; step < plan.info().gradient_steps; ++step)
        again += plan.step(VELO_SEQUENCE_GRADIENT, rank, step).cells;
      CHECK(forward.flops_visible == 2.0 * 2 * (d + d) * static_cast<double>(cells));
      CHECK(forward.bytes_read == q.bytes() + 2 * kv.bytes());
      const std::vector<velo_shape> saved =
          shapes_of(ranks.context(rank), "context_parallel_attention", values);
      const shaped statistics(f32, {2, saved[1].sizes[1], saved[1].sizes[2]}),
          kept(f32, {saved[3].sizes[0]});
      const named more = {{"dy", of(q.view)},
                          {"attention_out", of(q.view)},
                          {"softmax_max", of(statistics.view)},
                          {"softmax_sum", of(statistics.view)},
                          {"kept", of(kept.view)}};
      const velo_cost back =
          cost_of(ranks.context(rank), "context_parallel_attention_backward", with(values, more));
      CHECK(back.flops_visible == 4.0 * 2 * (d + d) * static_cast<double>(again));
      visible += forward.flops_visible;
    }
    // Together those of attention over the whole sequence.
    CHECK(visible == 2.0 * 2 * (d + d) * heads * sequence * (sequence + 1) / 2);
  }
}
