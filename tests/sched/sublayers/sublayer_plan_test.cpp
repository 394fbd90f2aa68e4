// Plans of sublayers against a second account of what their steps read and write: every step is
// there once and behind all that it needs, the price is that of the longest path, small orders are
// the best of all that there are, and descriptions and orders that make no sense are refused by
// name.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/json_tree.hpp"
#include "tests/random.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/sublayers/sublayer_plans.hpp"

using namespace velo;
using namespace velo::testing;
using core::at;

namespace {

// The indices of the steps that write what a step reads.
std::vector<std::set<std::int64_t>> needs_by_flow(const wish& of, const step_list& steps) {
  const layer_values values(of);
  std::map<std::string, std::int64_t> writer;
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (const std::string& write : values.of(steps[i]).writes)
      writer[write] = static_cast<std::int64_t>(i);
  std::vector<std::set<std::int64_t>> all;
  for (const velo_sublayer_step& step : steps) {
    std::set<std::int64_t>& own = all.emplace_back();
    for (const std::string& read : values.of(step).reads) own.insert(writer.at(read));
  }
  return all;
}

double time_of(const wish& of, const velo_sublayer_step& step, int parts) {
  const double whole = of.times.empty() ? 1 : of.times[at(step.kind)];
  return whole / parts + (step.message != 0 ? of.latency : 0);
}
// How many steps of this kind and layer there are.
int parts_of(const step_list& steps, const velo_sublayer_step& like) {
  return static_cast<int>(std::count_if(steps.begin(), steps.end(), [&](const auto& one) {
    return one.kind == like.kind && one.layer == like.layer;
  }));
}

// The makespan by ends that are raised until none changes.
double longest_path(const wish& of, const step_list& steps,
                    const std::vector<std::set<std::int64_t>>& needs) {
  std::vector<double> ends(steps.size(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    double last[2] = {0, 0};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      double begin = last[steps[i].message];
      for (const std::int64_t need : needs[i]) begin = std::max(begin, ends[at(need)]);
      const double end = begin + time_of(of, steps[i], parts_of(steps, steps[i]));
      last[steps[i].message] = end;
      changed |= end > ends[i];
      ends[i] = std::max(ends[i], end);
    }
  }
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

void check(const wish& of) {
  const sublayers_handle plan(of);
  const step_list steps = plan.steps();
  const velo_sublayers_info info = plan.info();
  INFO(of.forward << " forward, " << of.backward << " backward, slicing " << of.slicing << ", "
                  << of.slices << " slices, flags " << of.flags);
  CHECK(steps.size() == layer_values(of).count());
  CHECK(layer_values(of).works(steps));
  const auto needs = needs_by_flow(of, steps);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    wrong += plan.needs(static_cast<std::int64_t>(i)) == needs[i] ? 0 : 1;
  CHECK(wrong == 0);
  CHECK(info.steps == static_cast<std::int64_t>(steps.size()));
  CHECK(info.makespan == Approx(longest_path(of, steps, needs)));
  CHECK(info.makespan >= std::max(info.computing, info.communicating) - 1e-9);
  CHECK(info.makespan <= info.computing + info.communicating + 1e-9);
  CHECK(info.exposed == Approx(info.makespan - info.computing).margin(1e-9));
}

wish any_wish(random_source& draw) {
  wish of;
  of.forward = static_cast<std::int32_t>(draw.below(4));
  of.backward = static_cast<std::int32_t>(draw.below(4));
  of.flags = static_cast<std::uint32_t>(draw.below(4));
  if (of.forward == 0 || of.backward == 0) {
    of.slicing = static_cast<velo_sublayer_slicing>(draw.below(4));
    if (of.slicing != VELO_SUBLAYER_WHOLE) of.slices = 1 + static_cast<std::int32_t>(draw.below(5));
  }
  if (draw.one_in(3))
    for (int i = 0; i < of.forward; ++i)
      of.forward_dense.push_back(static_cast<std::int32_t>(draw.below(2)));
  if (draw.one_in(3))
    for (int i = 0; i < of.backward; ++i)
      of.backward_dense.push_back(static_cast<std::int32_t>(draw.below(2)));
  for (int kind = 0; kind < 14; ++kind) of.times.push_back(static_cast<double>(draw.below(16)) / 4);
  of.latency = static_cast<double>(draw.below(3)) / 8;
  return of;
}

}  // namespace

TEST_CASE("each step of a layer is there once, and behind all that writes what it reads") {
  for (int forward = 0; forward < 4; ++forward)
    for (int backward = 0; backward < 4; ++backward)
      for (std::uint32_t flags = 0; flags < 4; ++flags) {
        check({forward, backward, flags});
        if (forward > 0 && backward > 0) continue;
        for (velo_sublayer_slicing slicing = 1; slicing < 4; ++slicing)
          for (const int slices : {1, 2, 3, 7}) check({forward, backward, flags, slicing, slices});
      }
  check({4096, 0, 3});
  check({300, 299, 3});
}

TEST_CASE("plans of random layers, times and slices have the price of their longest path") {
  random_source draw(29);
  for (int i = 0; i < 600; ++i) check(any_wish(draw));
}

TEST_CASE("every message of a pair of layers travels while something of the other is computed") {
  const wish pairs{2, 2, VELO_SUBLAYERS_SHARED | VELO_SUBLAYERS_SEND};
  const sublayers_handle plan(pairs);
  CHECK(plan.info().messages == 2 * 4 + 1);
  CHECK(plan.info().exposed == 0);
  const step_list steps = plan.steps();
  CHECK(steps[0].kind == VELO_SUBLAYER_COMBINE_B);
  CHECK(steps[0].layer == 1);
  CHECK(steps[1].kind == VELO_SUBLAYER_ATTENTION_F);
  CHECK(steps[1].layer == 0);
  // A layer by itself: combine F is exposed, and C, of which half hides behind the shared expert.
  CHECK(sublayers_handle({1, 0, VELO_SUBLAYERS_SHARED}).info().exposed == 1);
  CHECK(sublayers_handle({0, 1, VELO_SUBLAYERS_SHARED}).info().exposed == 0);
  CHECK(sublayers_handle({0, 1}).info().exposed == 1);
  CHECK(sublayers_handle({0, 0}).steps().empty());
}

namespace {

// The least makespan of all orders of both streams.
double least_of_all_orders(const wish& of, const step_list& steps) {
  const auto needs = needs_by_flow(of, steps);
  std::vector<std::size_t> streams[2];
  std::vector<double> times;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    streams[steps[i].message].push_back(i);
    times.push_back(time_of(of, steps[i], parts_of(steps, steps[i])));
  }
  double least = std::numeric_limits<double>::infinity();
  do {
    std::sort(streams[1].begin(), streams[1].end());
    do {
      std::vector<double> ends(steps.size(), -1);
      std::size_t at_place[2] = {0, 0}, done = 0;
      double free[2] = {0, 0};
      for (bool moved = true; moved;) {
        moved = false;
        for (const int s : {0, 1})
          while (at_place[s] < streams[s].size()) {
            const std::size_t i = streams[s][at_place[s]];
            double begin = free[s];
            bool ready = true;
            for (const std::int64_t need : needs[i]) {
              ready &= ends[at(need)] >= 0;
              begin = std::max(begin, ends[at(need)]);
            }
            if (!ready) break;
            free[s] = ends[i] = begin + times[i];
            ++at_place[s], ++done, moved = true;
          }
      }
      if (done == steps.size()) least = std::min(least, std::max(free[0], free[1]));
    } while (std::next_permutation(streams[1].begin(), streams[1].end()));
  } while (std::next_permutation(streams[0].begin(), streams[0].end()));
  return least;
}

}  // namespace

TEST_CASE("of all orders of a small plan none is shorter") {
  for (const wish& of : std::vector<wish>{
           {1, 1},
           {1, 0, VELO_SUBLAYERS_SHARED},
           {0, 1, VELO_SUBLAYERS_SHARED | VELO_SUBLAYERS_SEND},
           {1, 0, VELO_SUBLAYERS_SHARED, VELO_SUBLAYER_BY_EXPERT, 3},
           {1, 0, 0, VELO_SUBLAYER_BY_ROWS, 3},
           {1, 0, 0, VELO_SUBLAYER_BY_SEQUENCE, 3},
           {0, 1, 0, VELO_SUBLAYER_BY_ROWS, 2},
           {0, 1, 0, VELO_SUBLAYER_BY_EXPERT, 2},
           {0, 1, 0, VELO_SUBLAYER_BY_SEQUENCE, 2},
       }) {
    INFO(of.forward << " forward, slicing " << of.slicing << ", " << of.slices << " slices");
    const sublayers_handle plan(of);
    CHECK(plan.info().makespan == Approx(least_of_all_orders(of, plan.steps())));
  }
}

TEST_CASE("slices hide messages, and their number is chosen by the times where it is left open") {
  wish of{1, 0, 0, VELO_SUBLAYER_BY_ROWS, 1};
  of.times.assign(14, 1);
  of.times[VELO_SUBLAYER_EXPERTS_F] = 4;
  double before = sublayers_handle(of).info().makespan;
  for (const int slices : {2, 4, 8}) {
    of.slices = slices;
    const double now = sublayers_handle(of).info().makespan;
    CHECK(now < before);
    before = now;
  }
  of.slices = 0;
  CHECK(sublayers_handle(of).info().slices == 8);
  of.latency = 10;
  CHECK(sublayers_handle(of).info().slices == 1);
  of.latency = 0.3;
  const std::int32_t chosen = sublayers_handle(of).info().slices;
  const double least = sublayers_handle(of).info().makespan;
  CHECK(chosen > 1);
  CHECK(chosen < 8);
  for (of.slices = 1; of.slices <= 8; ++of.slices)
    CHECK(sublayers_handle(of).info().makespan >= least);
}

TEST_CASE(
    "an order of the caller's own is taken if it works, and refused at its first wrong step") {
  random_source draw(31);
  int works = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    wish of = any_wish(draw);
    of.order = sublayers_handle(of).steps();
    if (of.order.size() < 2) continue;
    const step_list plans = of.order;
    for (std::uint64_t swaps = 1 + draw.below(2); swaps-- > 0;) {
      const std::size_t place = draw.below(of.order.size() - 1);
      std::swap(of.order[place], of.order[place + 1]);
    }
    velo_sublayers plan = nullptr;
    const velo_sublayers_desc desc = of.desc();
    const call_record made = record_of(velo_sublayers_create(&desc, &plan));
    const bool right = layer_values(of).works(of.order);
    REQUIRE((made.code == VELO_OK) == right);
    (right ? works : refused) += 1;
    if (!right) {
      REQUIRE(made.code == VELO_ERR_ARGUMENT);
      const auto place = at(std::stol(made.argument.substr(std::string("desc.order[").size())));
      step_list until(of.order.begin(), of.order.begin() + static_cast<std::ptrdiff_t>(place));
      REQUIRE(layer_values(of).works(until));
      until.push_back(of.order[place]);
      REQUIRE(!layer_values(of).works(until));
    }
    velo_sublayers_destroy(plan);
  }
  CHECK(works > 500);
  CHECK(refused > 500);
}

namespace {

call_record create(const velo_sublayers_desc& desc) {
  velo_sublayers plan = nullptr;
  call_record record = record_of(velo_sublayers_create(&desc, &plan));
  if (plan != nullptr && record.code != VELO_OK) record.argument += ", made";
  velo_sublayers_destroy(plan);
  return record;
}

}  // namespace

TEST_CASE("descriptions of sublayers that make no sense are refused by the field's name") {
  using desc = velo_sublayers_desc;
  static const double times[14] = {-1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const double wrong_times[14] = {0, 1, 1, NAN, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const std::int32_t dense[] = {0, 2};
  static const velo_sublayer_step steps[] = {{VELO_SUBLAYER_ATTENTION_F, 0, 0, 0},
                                             {VELO_SUBLAYER_DISPATCH_F, 0, 0, 1},
                                             {VELO_SUBLAYER_EXPERTS_F, 0, 0, 0},
                                             {VELO_SUBLAYER_COMBINE_F, 0, 0, 1}};
  desc valid = VELO_SUBLAYERS_DESC_INIT;
  valid.forward_layers = 1;
  valid.times = times;
  valid.order = steps;
  valid.order_steps = 4;
  REQUIRE(create(valid).code == VELO_OK);
  const velo_status wrong = VELO_ERR_ARGUMENT;
  static velo_sublayer_step changed[4];
  const auto with_step = [](int place, velo_sublayer_step step) {
    return [place, step](desc& d) {
      std::copy_n(steps, 4, changed);
      changed[place] = step;
      d.order = changed;
    };
  };
  check_refusals<desc>(
      valid, create,
      {{[](desc& d) { d.forward_layers = -1; }, wrong, "desc.forward_layers", "0 to 4096", "-1"},
       {[](desc& d) { d.backward_layers = 4097; }, wrong, "desc.backward_layers", "0 to 4096"},
       {[](desc& d) { d.flags = 4; }, wrong, "desc.flags"},
       {[](desc& d) { d.slicing = 4; }, wrong, "desc.slicing"},
       {[](desc& d) { d.slicing = VELO_SUBLAYER_BY_ROWS, d.backward_layers = 1; }, wrong,
        "desc.slicing", "VELO_SUBLAYER_WHOLE where a forward and a backward go at once"},
       {[](desc& d) { d.slices = 2; }, wrong, "desc.slices", "0 or 1 with VELO_SUBLAYER_WHOLE",
        "2"},
       {[](desc& d) { d.slices = 0; }, wrong, "desc.slices"},
       {[](desc& d) { d.slicing = VELO_SUBLAYER_BY_ROWS, d.slices = 65; }, wrong, "desc.slices",
        "0 to 64"},
       {[](desc& d) { d.slicing = VELO_SUBLAYER_BY_ROWS, d.slices = 64, d.forward_layers = 1025; },
        wrong, "desc.slices"},
       {[](desc& d) { d.slicing = VELO_SUBLAYER_BY_ROWS, d.slices = 0; }, wrong, "desc.slices",
        "1 or more with an order"},
       {[](desc& d) { d.forward_layers = 2, d.forward_dense = dense; }, wrong,
        "desc.forward_dense[1]", "0 or 1", "2"},
       {[](desc& d) { d.times = wrong_times; }, wrong, "desc.times[3]", "0 to 1e18"},
       {[](desc& d) { d.latency = -1; }, wrong, "desc.latency", "0 to 1e18", "-1"},
       {[](desc& d) { d.latency = INFINITY; }, wrong, "desc.latency"},
       {[](desc& d) { d.order = nullptr; }, VELO_ERR_NULL, "desc.order", "4 steps"},
       {[](desc& d) { d.order_steps = 3; }, wrong, "desc.order_steps"},
       {[](desc& d) { d.order_steps = INT64_MAX; }, wrong, "desc.order_steps"},
       {with_step(2, {VELO_SUBLAYER_ATTENTION_F, 0, 0, 0}), wrong, "desc.order[2]",
        "each step once", "attention_f of layer 0, slice 0 again"},
       {with_step(1, {VELO_SUBLAYER_DISPATCH_F, 0, 0, 0}), wrong, "desc.order[1].message"},
       {with_step(1, {VELO_SUBLAYER_DISPATCH_F, 1, 0, 1}), wrong, "desc.order[1]"},
       {with_step(1, {VELO_SUBLAYER_DISPATCH_F, 0, 1, 1}), wrong, "desc.order[1]"},
       {with_step(1, {VELO_SUBLAYER_DISPATCH_B, 0, 0, 1}), wrong, "desc.order[1]"},
       {with_step(1, {VELO_SUBLAYER_SHARED_F, 0, 0, 0}), wrong, "desc.order[1]"},
       {with_step(1, {99, 0, 0, 1}), wrong, "desc.order[1]"},
       {with_step(1, {-1, INT32_MIN, INT32_MAX, 1}), wrong, "desc.order[1]"}});
}

namespace {

double number_in(const json_t* of, const char* key) {
  return json_number_value(json_object_get(of, key));
}

}  // namespace

TEST_CASE("a plan's texts have its steps and times, or those of a run") {
  const sublayers_handle plan({1, 1, VELO_SUBLAYERS_SEND});
  const step_list steps = plan.steps();
  const json_tree all(json_loads(plan.text(VELO_SUBLAYERS_JSON).c_str(), 0, nullptr));
  const json_t* const listed = json_object_get(all.get(), "steps");
  CHECK(number_in(all.get(), "makespan") == plan.info().makespan);
  CHECK(text_in(all.get(), "slicing") == "whole");
  REQUIRE(json_array_size(listed) == steps.size());
  CHECK(text_in(json_array_get(listed, 0), "step") == "combine_b");
  CHECK(text_in(json_array_get(listed, 0), "stream") == "messages");
  for (std::size_t i = 0; i < steps.size(); ++i)
    CHECK(json_array_size(json_object_get(json_array_get(listed, i), "needs")) ==
          plan.needs(static_cast<std::int64_t>(i)).size());
  std::vector<velo_sublayer_span> spans(steps.size(), {-1, -1});
  spans[0] = {1000, 1500};
  spans[1] = {1100, 1900};
  spans[2] = {1900, -1};  // failed
  const json_tree run(json_loads(plan.text(VELO_SUBLAYERS_JSON, spans.data()).c_str(), 0, nullptr));
  const json_t* const measured = json_object_get(run.get(), "steps");
  CHECK(number_in(run.get(), "makespan") == 900);
  CHECK(number_in(run.get(), "computing") == 800);
  CHECK(number_in(json_array_get(measured, 1), "begin") == 100);
  CHECK(number_in(json_array_get(measured, 2), "begin") == -1);
  const std::string picture = plan.text(VELO_SUBLAYERS_SVG, spans.data());
  std::size_t drawn = 0;
  for (std::size_t place = 0; (place = picture.find("<title>", place)) != std::string::npos;
       ++place)
    ++drawn;
  CHECK(drawn == 2);
  spans[3] = {2000, 1999};
  CHECK_REFUSED(velo_sublayers_write(plan, spans.data(), VELO_SUBLAYERS_JSON, nullptr, 0, nullptr),
                VELO_ERR_ARGUMENT, "spans[3]");
  CHECK_REFUSED(velo_sublayers_write(plan, nullptr, 2, nullptr, 0, nullptr), VELO_ERR_ARGUMENT,
                "format");
  const sublayers_handle large({4096, 0, 0, VELO_SUBLAYER_BY_SEQUENCE, 16});
  CHECK_REFUSED(velo_sublayers_write(large, nullptr, VELO_SUBLAYERS_SVG, nullptr, 0, nullptr),
                VELO_ERR_ARGUMENT, "format");
}

// 100,000 in the label `long`.
TEST_CASE("any description of sublayers is made and works, or is refused by a field's name") {
  const char* const asked = std::getenv("VELO_SUBLAYER_PLANS");
  const int plans = asked == nullptr ? 5000 : std::atoi(asked);
  random_source draw(37);
  constexpr std::int32_t words[] = {0, 1, 2, 3, 5, 64, 65, -1, 4096, 4097, INT32_MIN, INT32_MAX};
  constexpr double numbers[] = {0, 1, 0.5, 1e18, 1e300, -1, NAN, INFINITY, 5e-324};
  int made = 0;
  for (int i = 0; i < plans; ++i) {
    wish of = any_wish(draw);
    if (!draw.one_in(4)) of.order = sublayers_handle(of).steps();
    for (velo_sublayer_step& step : of.order) {
      if (!draw.one_in(40)) continue;
      std::int32_t* const fields[] = {&step.kind, &step.layer, &step.slice, &step.message};
      *draw.pick(fields) = draw.pick(words);
    }
    if (draw.one_in(4)) of.times[draw.below(14)] = draw.pick(numbers);
    if (draw.one_in(4)) of.latency = draw.pick(numbers);
    if (!of.forward_dense.empty() && draw.one_in(4)) of.forward_dense[0] = draw.pick(words);
    velo_sublayers_desc desc = of.desc();
    if (draw.one_in(4)) desc.slicing = draw.pick(words);
    if (draw.one_in(4)) desc.slices = draw.pick(words);
    if (draw.one_in(8)) desc.flags = static_cast<std::uint32_t>(draw.pick(words));
    velo_sublayers plan = nullptr;
    const call_record record = record_of(velo_sublayers_create(&desc, &plan));
    if (record.code != VELO_OK) {
      REQUIRE((record.code == VELO_ERR_ARGUMENT || record.code == VELO_ERR_NULL));
      REQUIRE(record.argument.rfind("desc.", 0) == 0);
      continue;
    }
    ++made;
    velo_sublayers_info info = VELO_SUBLAYERS_INFO_INIT;
    REQUIRE(velo_sublayers_get_info(plan, &info) == VELO_OK);
    REQUIRE(info.makespan >= info.computing);
    velo_sublayers_destroy(plan);
  }
  CHECK(made > plans / 20);
}
