// Copies of busy experts between two steps: a plan by the rows of the first step, weights moved as
// two shardings say, and a second step whose rows go to the copies. Outputs have the bits of
// experts that lie once, gradients of copies add up to those, and no rank has much more than the
// mean.
#include <deque>

#include "tests/sched/moe/layer_pass.hpp"
#include "velo/expert_plan.h"
#include "velo/sharding.h"

using namespace velo::testing;

namespace {

using list = std::vector<std::int64_t>;

constexpr std::int64_t tokens = 512, top_k = 2, experts = 16, width = 24;

// The experts of each rank in the order of its slots; -1: an empty one.
using placement = std::vector<list>;

placement dealt_out(std::int64_t ranks, std::int64_t slots) {
  placement all(at(ranks), list(at(slots), -1));
  for (std::int64_t e = 0; e < experts; ++e)
    all[at(e / (experts / ranks))][at(e % (experts / ranks))] = e;
  return all;
}

list flat(const placement& of) {
  list all;
  for (const list& one : of) all.insert(all.end(), one.begin(), one.end());
  return all;
}

placement planned(const placement& current, const list& loads) {
  const auto ranks = static_cast<std::int64_t>(current.size()),
             slots = static_cast<std::int64_t>(current[0].size());
  const list now = flat(current);
  velo_expert_plan_desc desc = VELO_EXPERT_PLAN_DESC_INIT;
  desc.ranks = ranks, desc.slots = slots, desc.experts = experts;
  desc.loads = loads.data(), desc.current = now.data();
  velo_expert_plan plan = nullptr;
  REQUIRE(velo_expert_plan_create(&desc, &plan) == VELO_OK);
  placement all(at(ranks), list(at(slots), -1));
  for (std::int64_t r = 0; r < ranks; ++r)
    REQUIRE(velo_expert_plan_get_experts(plan, r, all[at(r)].data(), slots, nullptr) == VELO_OK);
  velo_expert_plan_destroy(plan);
  return all;
}

std::int64_t slot_of(const list& slots, std::int64_t expert) {
  const auto found = std::find(slots.begin(), slots.end(), expert);
  return found == slots.end() ? -1 : found - slots.begin();
}

// A parameter for each expert, which the ranks that have it hold whole.
class placed_weights {
 public:
  explicit placed_weights(const placement& by) {
    velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
    desc.dp = desc.ep = static_cast<std::int64_t>(by.size());
    velo_topology topology = nullptr;
    REQUIRE(velo_topology_create(&desc, &topology) == VELO_OK);
    REQUIRE(velo_sharding_create(topology, &all_) == VELO_OK);
    velo_topology_destroy(topology);
    for (std::int64_t e = 0; e < experts; ++e) {
      list bounds;
      for (const list& slots : by) {
        bounds.push_back(0);
        bounds.push_back(slot_of(slots, e) >= 0 ? width : 0);
      }
      const std::int64_t shape[] = {width, width};
      velo_sharding_cut cut = {
          "ep", 0, nullptr, 0, bounds.data(), static_cast<std::int64_t>(bounds.size())};
      velo_sharding_parameter one = VELO_SHARDING_PARAMETER_INIT;
      const std::string name = "expert." + std::to_string(e);
      one.name = name.c_str(), one.shape = shape, one.ndim = 2;
      one.cuts = &cut, one.cut_count = 1, one.experts = 1;
      REQUIRE(velo_sharding_add(all_, &one, nullptr) == VELO_OK);
    }
  }
  ~placed_weights() { velo_sharding_destroy(all_); }
  placed_weights(const placed_weights&) = delete;

  // The rank from which another takes an expert that it is to have.
  std::int64_t source_of(const placed_weights& to, std::int64_t expert, std::int64_t rank) const {
    velo_sharding_move move = {};
    std::int64_t count = 0;
    REQUIRE(velo_sharding_transfer(all_, to.all_, expert, rank, VELO_SHARDING_PARTS, &move, 1,
                                   &count) == VELO_OK);
    REQUIRE(count == 1);
    REQUIRE((move.begin[0] == 0 && move.end[0] == width && move.end[1] == width));
    return move.source;
  }

 private:
  velo_sharding all_ = nullptr;
};

double weight_of(std::int64_t expert, std::int64_t i) {
  return std::sin(static_cast<double>(expert * 977 + i));
}

// Sets the weights of a rank's slots as the first step has them.
void set_first(const list& slots, matrix& all) {
  for (std::int64_t i = 0; i < all.count(); ++i) {
    const std::int64_t expert = slots[at(i / (width * width))];
    all.set(i, expert < 0 ? 0 : weight_of(expert, i % (width * width)));
  }
}

velo_tensor expert_in(const matrix& of, std::int64_t slot) {
  static const std::int64_t shape[] = {width, width};
  velo_tensor one = of.view();
  one.data = static_cast<float*>(one.data) + slot * width * width;
  one.shape = shape, one.ndim = 2;
  return one;
}

struct one_move {
  std::int64_t expert, from, to;
};

// Sends and receives what a rank's part of the moves is; what stays is copied.
velo_status move_weights(const rank_of_group& me, const std::vector<one_move>& moves,
                         const placement& before, const placement& after, const matrix& old,
                         const matrix& made) {
  std::deque<velo_tensor> views;
  std::vector<velo_group_message> messages;
  for (const one_move& one : moves) {
    const list &from = before[at(one.from)], &to = after[at(one.to)];
    if (one.from == me.rank) views.push_back(expert_in(old, slot_of(from, one.expert)));
    if (one.from == me.rank && one.to != me.rank)
      messages.push_back({&views.back(), static_cast<std::int32_t>(one.to), VELO_MESSAGE_SEND});
    if (one.to != me.rank) continue;
    const velo_tensor place = expert_in(made, slot_of(to, one.expert));
    if (one.from == me.rank)
      std::memcpy(place.data, views.back().data, width * width * sizeof(float));
    else
      messages.push_back(
          {&views.emplace_back(place), static_cast<std::int32_t>(one.from), VELO_MESSAGE_RECEIVE});
  }
  return velo_group_exchange(me.stream, me.group, messages.data(),
                             static_cast<std::int64_t>(messages.size()));
}

// The slot of each choice, numbered over all ranks; an expert's copies take its rows by turns.
std::vector<std::int32_t> placed_choices(const std::vector<std::int32_t>& choices,
                                         const placement& by) {
  std::vector<list> places(at(experts));
  const auto slots = static_cast<std::int64_t>(by[0].size());
  for (std::size_t r = 0; r < by.size(); ++r)
    for (std::int64_t s = 0; s < slots; ++s)
      if (by[r][at(s)] >= 0)
        places[at(by[r][at(s)])].push_back(static_cast<std::int64_t>(r) * slots + s);
  std::vector<std::int32_t> all;
  list row(at(experts));
  for (const std::int32_t expert : choices) {
    const list& of = places[at(expert)];
    all.push_back(static_cast<std::int32_t>(of[at(row[at(expert)]++) % of.size()]));
  }
  return all;
}

// A step of a rank: rows, products, sums, and the gradient of the weights for dy.
velo_status take_step(const rank_of_group& me, const placement& by,
                      const std::vector<std::int32_t>& placed, const matrix& weights, matrix& y,
                      matrix& dweight, std::int64_t& rows) {
  const auto slots = static_cast<std::int64_t>(by[0].size());
  const std::int64_t own = tokens / me.size, first = me.rank * own;
  const open_layer layer(me.group, desc_of(slots * me.size, top_k));
  const std::int64_t shape[] = {own, top_k};
  const velo_tensor choices =
      view_of(const_cast<std::int32_t*>(placed.data() + first * top_k), i32, shape);
  const matrix all_x(f32, {tokens, width}, 1), all_dy(f32, {tokens, width}, 2),
      all_w(f32, {tokens, top_k}, 3);
  matrix x(f32, {own, width}), dy(f32, {own, width}), w(f32, {own, top_k}), dw(f32, {own, top_k});
  for (std::int64_t i = 0; i < own * width; ++i)
    x.set(i, all_x[first * width + i]), dy.set(i, all_dy[first * width + i]);
  for (std::int64_t i = 0; i < own * top_k; ++i) w.set(i, all_w[first * top_k + i]);
  velo_status done = velo_routing_set(layer.routing, me.stream, &choices, nullptr, nullptr);
  list counts(at(slots));
  if (done == VELO_OK) done = velo_routing_get_rows(layer.routing, counts.data(), slots, &rows);
  if (done != VELO_OK) return done;
  const matrix in(f32, {rows, width}), out(f32, {rows, width}), dout(f32, {rows, width});
  const velo_tensor vx = x.view(), vin = in.view(), vout = out.view(), vw = w.view(),
                    vdy = dy.view(), vdout = dout.view(), vdw = dw.view(), vy = y.view(),
                    matrices = weights.view(), gradient = dweight.view();
  const velo_tensor groups = view_of(counts.data(), i64, &slots, 1);
  done = velo_dispatcher_dispatch(layer.layer, me.stream, layer.routing, &vx, &vin);
  velo_grouped_matmul_args multiply = VELO_GROUPED_MATMUL_ARGS_INIT;
  multiply.x = &vin, multiply.weight = &matrices, multiply.y = &vout;
  multiply.group_list_tensor = &groups, multiply.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  if (done == VELO_OK) done = velo_grouped_matmul(me.stream, &multiply);
  if (done == VELO_OK)
    done = velo_dispatcher_combine(layer.layer, me.stream, layer.routing, &vout, &vw, &vy);
  if (done == VELO_OK)
    done = velo_dispatcher_combine_backward(layer.layer, me.stream, layer.routing, &vdy, &vout, &vw,
                                            &vdout, &vdw);
  velo_grouped_matmul_backward_args back = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
  back.dy = &vdout, back.x = &vin, back.dweight = &gradient;
  back.group_list_tensor = &groups, back.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  return done == VELO_OK ? velo_grouped_matmul_backward(me.stream, &back) : done;
}

// The steps of all ranks, and each expert's gradient summed over its copies.
struct results {
  std::vector<double> y, gradients;
  list rows;
};

results step_on(const local_ranks& ranks, const placement& by,
                const std::vector<std::int32_t>& choices, const std::deque<matrix>& weights) {
  const auto count = static_cast<std::int64_t>(by.size()),
             slots = static_cast<std::int64_t>(by[0].size());
  const std::vector<std::int32_t> placed = placed_choices(choices, by);
  std::deque<matrix> y, dweight;
  for (std::int64_t r = 0; r < count; ++r) {
    y.emplace_back(f32, list{tokens / count, width});
    dweight.emplace_back(f32, list{slots, width, width});
  }
  results made;
  made.rows.resize(at(count));
  ranks.require([&](const rank_of_group& me) {
    const std::size_t r = at(me.rank);
    return take_step(me, by, placed, weights[r], y[r], dweight[r], made.rows[r]);
  });
  made.gradients.resize(at(experts * width * width));
  for (std::size_t r = 0; r < at(count); ++r) {
    for (std::int64_t i = 0; i < y[r].count(); ++i) made.y.push_back(y[r][i]);
    for (std::int64_t i = 0; i < dweight[r].count(); ++i)
      if (const std::int64_t e = by[r][at(i / (width * width))]; e >= 0)
        made.gradients[at(e * width * width + i % (width * width))] += dweight[r][i];
  }
  return made;
}

// Choices of two experts a token: all of rank 0's (W2), or few of all (W3).
std::vector<std::int32_t> choices_of(bool on_one_rank, std::int64_t ranks) {
  std::vector<std::int32_t> all;
  const std::int64_t hot = experts / ranks;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t first = on_one_rank ? t * 5 % 7 % hot : t * t % 11 % 4 * 4;
    const std::int64_t second = on_one_rank ? (first + 1) % hot : (first + 4) % experts;
    all.push_back(static_cast<std::int32_t>(first));
    all.push_back(static_cast<std::int32_t>(second));
  }
  return all;
}

}  // namespace

TEST_CASE("copies of busy experts, moved between two steps, give the same and even out the ranks") {
  for (const int count : {2, 4, 8})
    for (const bool on_one_rank : {true, false}) {
      INFO(count << " ranks, on one rank " << on_one_rank);
      const local_ranks ranks(count);
      const std::vector<std::int32_t> choices = choices_of(on_one_rank, count);
      list loads(at(experts));
      for (const std::int32_t e : choices) ++loads[at(e)];
      const placement before = dealt_out(count, 2 * experts / count);
      std::deque<matrix> old, made;
      for (const list& slots : before) {
        const list shape = {static_cast<std::int64_t>(slots.size()), width, width};
        old.emplace_back(f32, shape), made.emplace_back(f32, shape);
        set_first(slots, old.back());
      }
      const results usual = step_on(ranks, before, choices, old);
      const placement after = planned(before, loads);
      const placed_weights from(before), to(after);
      std::vector<one_move> moves;
      for (std::int64_t r = 0; r < count; ++r)
        for (const std::int64_t e : after[at(r)])
          if (e >= 0) moves.push_back({e, from.source_of(to, e, r), r});
      ranks.require([&](const rank_of_group& me) {
        return move_weights(me, moves, before, after, old[at(me.rank)], made[at(me.rank)]);
      });
      const results even = step_on(ranks, after, choices, made);
      CHECK(even.y == usual.y);
      double largest = 0, difference = 0;
      for (std::size_t i = 0; i < usual.gradients.size(); ++i) {
        largest = std::max(largest, std::abs(usual.gradients[i]));
        difference = std::max(difference, std::abs(usual.gradients[i] - even.gradients[i]));
      }
      CHECK(difference <= 1e-5 * largest);
      const double mean = static_cast<double>(tokens * top_k) / count;
      const auto busiest = [&](const results& of) {
        return static_cast<double>(*std::max_element(of.rows.begin(), of.rows.end())) / mean;
      };
      if (on_one_rank) CHECK(busiest(usual) == count);
      CHECK(busiest(even) <= 1.15);
    }
}
