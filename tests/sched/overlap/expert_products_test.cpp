// all_to_all_all_gather_bmm and bmm_reduce_scatter_all_to_all: against sums in double, in every
// layout of ranks, dtype, level and form; against the calls apart, bit for bit; gradients by each
// other and by finite differences. Ranks are threads, processes, and threads of an MPI job.
#include "comm/processes.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/overlap/expert_apart.hpp"

using namespace velo::testing;

namespace {

// The bound of sums of numbers up to 1, the largest of which is some 8: half an ulp a rounding.
double bound_of(velo_dtype dtype, int roundings) {
  return roundings *
         (dtype.bits == 32 ? 4e-6 : 8.0 / (dtype.code == VELO_DTYPE_BFLOAT ? 256 : 2048));
}

double error_in(const whole_experts& whole, const expert_rank& one) {
  const expert_case& of = whole.of;
  double worst = 0;
  for (std::int64_t i = 0; i < one.y.count(); ++i) {
    const std::int64_t r = i / of.inner % one.all_rows(), m = i % of.inner;
    const std::int64_t e = one.first_expert() + i / (of.inner * one.all_rows());
    const double exact = whole.inner_sum(e, r, one.in_tp() * of.inner + m);
    worst = std::max(worst, std::abs(one.y[i] - activated(of.act, exact)));
    if (of.keeps) worst = std::max(worst, std::abs(one.pre[i] - exact));
  }
  return worst;
}

bool has_gathered(const whole_experts& whole, const expert_rank& one) {
  const expert_case& of = whole.of;
  for (std::int64_t i = 0; of.keeps && i < one.gathered.count(); ++i) {
    const std::int64_t e = one.first_expert() + i / (of.width * one.all_rows());
    if (one.gathered[i] != whole.token(e, i / of.width % one.all_rows(), i % of.width))
      return false;
  }
  return true;
}

double error_out(const whole_experts& whole, const expert_rank& one) {
  const expert_case& of = whole.of;
  const std::int64_t w = of.part_width(), r = of.part_rows();
  double worst = 0;
  for (std::int64_t i = 0; i < one.back.count(); ++i) {
    const std::int64_t row = one.in_ep() * of.rows + one.row(i / w % r);
    const double exact = whole.outer_sum(i / (r * w), row, one.column(i % w));
    worst = std::max(worst, std::abs(one.back[i] - exact));
  }
  return worst;
}

int wrong_results(const whole_experts& whole, const expert_rank& one) {
  return (error_in(whole, one) <= bound_of(whole.of.dtype, 2) ? 0 : 1) +
         (has_gathered(whole, one) ? 0 : 10) +
         (error_out(whole, one) <= bound_of(whole.of.dtype, 3) ? 0 : 100) +
         (borders_kept(one) ? 0 : 1000);
}

std::vector<std::unique_ptr<expert_rank>> ranks_of(const whole_experts& whole) {
  std::vector<std::unique_ptr<expert_rank>> all;
  for (int rank = 0; rank < whole.of.ranks(); ++rank)
    all.push_back(std::make_unique<expert_rank>(whole, rank));
  return all;
}

// The ranks of a local group as a grid, whose groups serve any case of that layout.
struct local_grid {
  local_grid(int ep, int tp, int threads = 1)
      : ranks(ep * tp, desc_with_small_buffer(), threads), groups(at(ep * tp)) {
    expert_case of;
    of.ep = ep, of.tp = tp;
    ranks.require([&](const rank_of_group& me) { return groups[at(me.rank)].make(of, me); });
  }
  static velo_group_desc desc_with_small_buffer() {
    velo_group_desc desc = group_desc();
    desc.buffer = 32 << 10;
    return desc;
  }
  void check(const expert_case& of) const {
    INFO(text_of(of));
    const whole_experts whole(of);
    const auto all = ranks_of(whole);
    ranks.require([&](const rank_of_group& me) {
      return call_both(*all[at(me.rank)], me, groups[at(me.rank)]);
    });
    for (const auto& one : all) CHECK(wrong_results(whole, *one) == 0);
  }

  const local_ranks ranks;
  std::vector<grid_groups> groups;
};

}  // namespace

TEST_CASE("experts' products have the sums of double in every layout, dtype and level") {
  const std::pair<int, int> grids[] = {{1, 1}, {2, 1}, {1, 2}, {3, 1}, {1, 3}, {2, 2},
                                       {4, 1}, {1, 4}, {4, 2}, {2, 4}, {8, 1}, {1, 8}};
  for (const auto& [ep, tp] : grids) {
    const local_grid grid(ep, tp, ep * tp == 2 ? 2 : 1);
    for (const char* level : {"2", "1", "0"}) {
      set_all(grid.ranks, "level", level);
      for (expert_case of : forms_of(ep, tp, level[0] == '2' && ep * tp <= 2)) {
        if (tp == 8 || tp == 3) of.rows = 24;
        grid.check(of);
      }
    }
  }
}

TEST_CASE("experts' products take any sizes, none among them") {
  const local_grid grid(2, 2);
  for (const std::int64_t shard : {VELO_EXPERT_SHARD_COLUMNS, VELO_EXPERT_SHARD_ROWS}) {
    expert_case of;
    of.ep = of.tp = 2, of.shard = shard, of.has_bias = true;
    of.local = 3, of.rows = 70, of.width = 130, of.inner = 33;
    grid.check(of);
    of.rows = 0;
    grid.check(of);
    of.rows = 2, of.width = 2, of.inner = 1, of.local = 1;
    grid.check(of);
    of.local = 0;
    grid.check(of);
  }
}

TEST_CASE("experts' products have the bits of collectives, products and activations apart") {
  for (const auto& [ep, tp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 2}}) {
    const local_grid grid(ep, tp);
    for (const char* level : {"2", "1", "0"}) {
      set_all(grid.ranks, "level", level);
      for (const expert_case& of : forms_of(ep, tp, false)) {
        INFO("level " << level << ", " << text_of(of));
        std::vector<int> wrong(at(ep * tp));
        grid.ranks.require([&](const rank_of_group& me) {
          wrong[at(me.rank)] = different_results(of, me, grid.groups[at(me.rank)]);
          return VELO_OK;
        });
        for (const int one : wrong) CHECK(one == 0);
      }
    }
  }
}

TEST_CASE("processes multiply experts as calls apart do, by slots and by larger parts") {
  for (const auto& [ep, tp] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
    const auto call = [ep = ep, tp = tp](const rank_of_group& me) {
      ending sum;
      sum.code = VELO_OK;
      grid_groups in;
      expert_case layout;
      layout.ep = ep, layout.tp = tp;
      const velo_status made = in.make(layout, me);
      if (made != VELO_OK) return ending_of(made);
      for (expert_case of : forms_of(ep, tp, false)) {
        sum.value += different_results(of, me, in);
        of.rows = 120, of.width = 160;
        sum.value += different_results(of, me, in);
      }
      return sum;
    };
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = 64 << 10;  // smaller than the larger parts of float32
    ranks.start_all(ep * tp, desc, call);
    check_right(ranks.wait());
  }
}

TEST_CASE("ranks of an MPI job on one host and on two multiply experts as calls apart do") {
  for (const auto& [hosts, ep, tp] :
       {std::tuple{"0000", 2, 2}, {"0011", 2, 2}, {"0101", 2, 2}, {"01", 2, 1}, {"01", 1, 2}}) {
    const ranks_on_hosts ranks(hosts);
    std::vector<int> wrong(at(ranks.size()));
    ranks.require([&, ep = ep, tp = tp](const rank_of_group& me) {
      grid_groups in;
      expert_case layout;
      layout.ep = ep, layout.tp = tp;
      const velo_status made = in.make(layout, me);
      for (const expert_case& of : forms_of(ep, tp, false))
        if (made == VELO_OK) wrong[at(me.rank)] += different_results(of, me, in);
      return made;
    });
    INFO("hosts " << hosts);
    for (const int one : wrong) CHECK(one == 0);
  }
}

namespace {

double dot(const matrix& a, const matrix& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) sum += a[i] * b[i];
  return sum;
}
void add(matrix& to, double factor, const matrix& what) {
  for (std::int64_t i = 0; i < to.count(); ++i) to.set(i, to[i] + factor * what[i]);
}

// The gradients of the layer act(x W1 + b1) W2 + b2 by the calls that its documentation names, for
// dy on a rank's tokens.
struct layer_gradients {
  layer_gradients(const expert_rank& rank)
      : one(rank),
        dx(f32, shape_of(rank.x)),
        dweight_in(f32, shape_of(rank.weight_in)),
        dweight_out(f32, shape_of(rank.weight_out)),
        dbias_in(f32, {shape_of(rank.y)[0], shape_of(rank.y)[2]}),
        dbias_out(f32, shape_of(rank.bias_out)),
        dh(f32, shape_of(rank.y)),
        dz(f32, shape_of(rank.y)),
        dback(f32, shape_of(rank.gathered)) {}

  static std::vector<std::int64_t> shape_of(const matrix& m) {
    const velo_tensor v = m.view();
    return {v.shape, v.shape + v.ndim};
  }

  velo_status run(const expert_case& of, velo_stream stream, const grid_groups& in,
                  const matrix& dy) {
    velo_status done = one.call_in(stream, in, dy, one.weight_out, !of.transposed, nullptr, dh,
                                   &dback, nullptr, VELO_EXPERT_ACTIVATION_NONE);
    if (done == VELO_OK) done = of_weight(of, stream, one.y, dback, dweight_out, nullptr);
    sum_columns(of);
    if (done == VELO_OK) done = of_activation(stream);
    if (done == VELO_OK)
      done = one.call_out(stream, in, dz, one.weight_in, !of.transposed, nullptr, dx);
    return done != VELO_OK ? done : of_weight(of, stream, one.gathered, dz, dweight_in, &dbias_in);
  }

  const expert_rank& one;
  matrix dx, dweight_in, dweight_out, dbias_in, dbias_out;

 private:
  void sum_columns(const expert_case& of) {
    const std::int64_t w = of.part_width(), rows = of.ep * of.rows;
    for (std::int64_t i = 0; i < dbias_out.count(); ++i) {
      double sum = 0;
      for (std::int64_t row = 0; row < rows; ++row)
        sum += dback[(i / w * rows + row) * of.width + one.column(i % w)];
      // Ranks of tp with rows all have the whole bias, and here each a half of its gradient.
      dbias_out.set(i, of.by_columns() ? sum : sum / of.tp);
    }
  }
  velo_status of_activation(velo_stream stream) const {
    const velo_tensor vdy = dh.view(), vx = one.pre.view(), vdx = dz.view();
    velo_silu_backward_args args = VELO_SILU_BACKWARD_ARGS_INIT;
    args.dy = &vdy, args.x = &vx, args.dx = &vdx;
    return velo_silu_backward(stream, &args);
  }
  static velo_status of_weight(const expert_case& of, velo_stream stream, const matrix& x,
                               const matrix& dy, const matrix& dweight, const matrix* dbias) {
    const std::int64_t rows = of.ep * of.rows;
    const std::int64_t left[] = {of.local * rows, x.view().shape[2]},
                       right[] = {of.local * rows, dy.view().shape[2]};
    const velo_tensor vx = slice_of(x, 0, left, 2), vdy = slice_of(dy, 0, right, 2),
                      vw = dweight.view();
    const velo_tensor vb = dbias == nullptr ? velo_tensor{} : dbias->view();
    std::vector<std::int64_t> ends;
    for (std::int64_t e = 1; e <= of.local; ++e) ends.push_back(e * rows);
    const velo_ints list{ends.data(), of.local};
    velo_grouped_matmul_backward_args args = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
    args.dy = &vdy, args.x = &vx, args.dweight = &vw, args.group_list = &list;
    args.transpose_weight = of.transposed;
    if (dbias != nullptr) args.dbias = &vb;
    return velo_grouped_matmul_backward(stream, &args);
  }

  matrix dh, dz, dback;
};

// The layer of both calls, whose experts' rows go from one to the other.
double loss_of(const expert_rank& one, const rank_of_group& me, const grid_groups& in,
               const expert_case& of, const matrix& dy) {
  const matrix* const bias = of.has_bias ? &one.bias_out : nullptr;
  if (one.fused_in(me.stream, in) != VELO_OK) return NAN;
  if (one.call_out(me.stream, in, one.y, one.weight_out, of.transposed, bias, one.back) != VELO_OK)
    return NAN;
  return dot(dy, one.back);
}

}  // namespace

TEST_CASE("each experts' product is the other's gradient, as finite differences say") {
  for (const std::int64_t shard : {VELO_EXPERT_SHARD_COLUMNS, VELO_EXPERT_SHARD_ROWS})
    for (const bool transposed : {false, true}) {
      expert_case of;
      of.ep = of.tp = 2, of.shard = shard, of.transposed = transposed, of.has_bias = true;
      of.act = VELO_EXPERT_ACTIVATION_SILU;
      INFO(text_of(of));
      const local_grid grid(2, 2);
      const whole_experts whole(of);
      const auto all = ranks_of(whole);
      std::vector<std::unique_ptr<matrix>> dy;
      std::vector<std::unique_ptr<layer_gradients>> gradients;
      for (int rank = 0; rank < 4; ++rank) {
        dy.push_back(std::make_unique<matrix>(f32, layer_gradients::shape_of(all[at(rank)]->back),
                                              900 + rank));
        gradients.push_back(std::make_unique<layer_gradients>(*all[at(rank)]));
      }
      const auto loss = [&] {
        std::vector<double> parts(4);
        grid.ranks.require([&](const rank_of_group& me) {
          const std::size_t r = at(me.rank);
          parts[r] = loss_of(*all[r], me, grid.groups[r], of, *dy[r]);
          return VELO_OK;
        });
        return parts[0] + parts[1] + parts[2] + parts[3];
      };
      loss();
      grid.ranks.require([&](const rank_of_group& me) {
        const std::size_t r = at(me.rank);
        return gradients[r]->run(of, me.stream, grid.groups[r], *dy[r]);
      });
      const std::pair<matrix expert_rank::*, matrix layer_gradients::*> each[] = {
          {&expert_rank::x, &layer_gradients::dx},
          {&expert_rank::weight_in, &layer_gradients::dweight_in},
          {&expert_rank::bias_in, &layer_gradients::dbias_in},
          {&expert_rank::weight_out, &layer_gradients::dweight_out},
          {&expert_rank::bias_out, &layer_gradients::dbias_out}};
      for (const auto& pair : each) {
        const auto input = pair.first;
        const auto gradient = pair.second;
        double predicted = 0, norm = 0;
        std::vector<std::unique_ptr<matrix>> step;
        for (std::size_t r = 0; r < 4; ++r) {
          const matrix& g = (*gradients[r]).*gradient;
          step.push_back(std::make_unique<matrix>(f32, layer_gradients::shape_of(g), 40));
          predicted += dot(g, *step[r]), norm += dot(g, g) * dot(*step[r], *step[r]);
        }
        constexpr double h = 1.0 / 256;
        const auto move = [&](double by) {
          for (std::size_t r = 0; r < 4; ++r) add((*all[r]).*input, by, *step[r]);
        };
        move(h);
        const double above = loss();
        move(-2 * h);
        const double difference = (above - loss()) / (2 * h);
        move(h);
        CHECK(std::abs(difference - predicted) <= 2e-3 * std::sqrt(norm));
        CHECK(std::abs(predicted) > 1e-3);
      }
    }
}
