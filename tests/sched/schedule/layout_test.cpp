// The contents of stages: texts of layouts, no-op layers, and their costs.
#include "sched/schedule/layout.hpp"

#include "tests/core/fails.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

sched::layout parsed(const std::string& text) {
  return sched::parse_layout(text, "layout");
}
std::string place_of_error(const std::string& text) {
  return failure_of([&] { parsed(text); }).argument;
}
velo_schedule_desc desc_of(velo_schedule_kind kind, const sizes& of, const char* layout) {
  velo_schedule_desc desc = desc_of(kind, of);
  desc.layout = layout;
  return desc;
}

}  // namespace

TEST_CASE("a layout is unfolded, parentheses before letters") {
  CHECK(sched::text_of(parsed("Et*3|(tt|)*4tmL")) == "Ettt|tt|tt|tt|tt|tmL");
  CHECK(sched::text_of(parsed("E,t,|,(t|(tt,)*2|)*2,L")) == "Et|t|tttt|t|tttt|L");
  CHECK(sched::text_of(parsed("E|*3L")) == "E|||L");
  CHECK(sched::text_of(parsed("(E)(L)")) == "EL");
  const sched::layout one = parsed("Et*3|(tt|)*4tmL");
  CHECK(one.layers() == 12);
  CHECK(one.stages[2].first_layer == 5);
  CHECK(one.stages[5].predictors == 1);
}

TEST_CASE("what is no layout is named with its place") {
  CHECK(place_of_error("") == "layout, character 1");
  CHECK(place_of_error("tL") == "layout, character 1");
  CHECK(place_of_error("Et") == "layout, character 3");
  CHECK(place_of_error("EtxL") == "layout, character 3");
  CHECK(place_of_error("Et*L") == "layout, character 4");
  CHECK(place_of_error("Et*0L") == "layout, character 4");
  CHECK(place_of_error("Et*99999999999L") == "layout, character 4");
  CHECK(place_of_error("E(tL") == "layout, character 5");
  CHECK(place_of_error("Et)L") == "layout, character 3");
  CHECK(place_of_error("Et|EL") == "layout, character 4");
  CHECK(place_of_error("Et|mtL") == "layout, character 5");
  CHECK(place_of_error("Et|Lt") == "layout, character 5");
  CHECK(place_of_error("Et|LL") == "layout, character 5");
  CHECK(place_of_error("E((t*9999)*9999)*9999L") == "layout, character 3");
  CHECK(place_of_error("E" + std::string(17, '(') + "t" + std::string(17, ')') + "L") ==
        "layout, character 18");
}

TEST_CASE("a layout has as many stages as ranks hold, and says how many that is") {
  CHECK(generate(desc_of(VELO_SCHEDULE_INTERLEAVED, {2, 4}, "Et|t|t|t|t|tL"), {}).sizes().stages ==
        6);
  const auto refused = [](velo_schedule_kind kind, const sizes& of, const char* layout) {
    return failure_of([&] { generate(desc_of(kind, of, layout), {}); }).argument;
  };
  CHECK(refused(VELO_SCHEDULE_1F1B, {2, 4}, "Et|t|tL") == "desc.layout, character 8");
  CHECK(refused(VELO_SCHEDULE_INTERLEAVED, {2, 4}, "Et|t|tL") == "desc.layout, character 8");
  CHECK(refused(VELO_SCHEDULE_INTERLEAVED, {2, 4}, "Et|t|tm|L") == "desc.layout, character 10");
  CHECK(refused(VELO_SCHEDULE_INTERLEAVED, {2, 4}, "Et|tm|t|L") == "desc.layout, character 7");
  CHECK(refused(VELO_SCHEDULE_INTERLEAVED, {2, 4}, "Et|tm||L") == "desc.layout, character 9");
  CHECK(generate(desc_of(VELO_SCHEDULE_ZBV, {2, 4}, "Et|t|tm|L"), {}).layers() != nullptr);
  // Each direction of DualPipe has the whole model.
  CHECK(sched::describe_stage(generate(desc_of(VELO_SCHEDULE_DUALPIPE, {2, 4}, "Ett|tL"), {}), 2)
            .layers == 2);
}

TEST_CASE("layers that do nothing are counted and cost nothing") {
  velo_schedule_desc desc = desc_of(VELO_SCHEDULE_1F1B, {2, 4});
  const std::int32_t noops[] = {0, 7};
  desc.layers = 8;
  desc.noop_layers = noops;
  desc.noop_count = 2;
  const sched::schedule order = generate(desc, {});
  CHECK(sched::describe_stage(order, 1).noop_layers == 1);
  CHECK(sched::describe_stage(order, 1).first_layer == 4);
  CHECK(price(order).makespan == price(made(VELO_SCHEDULE_1F1B, {2, 4})).makespan);
  const auto refused = [&](std::int32_t first, std::int32_t second, std::int32_t layers) {
    const std::int32_t wrong[] = {first, second};
    desc.noop_layers = wrong;
    desc.layers = layers;
    return failure_of([&] { generate(desc, {}); }).argument;
  };
  CHECK(refused(0, 8, 8) == "desc.noop_layers");
  CHECK(refused(-1, 1, 8) == "desc.noop_layers");
  CHECK(refused(1, 1, 8) == "desc.noop_layers");
  CHECK(refused(0, 1, 7) == "desc.layers");
  CHECK(refused(0, 1, 0) == "desc.noop_count");
  CHECK(refused(0, 1, 2) == "desc.costs.shares");  // a model of nothing else
}

TEST_CASE("stages cost and hold their share of the model") {
  // Shares 3, 1, 1, 3 of 8: 2 ranks of a whole F = 1 each make 2 of it.
  const sched::schedule order =
      generate(desc_of(VELO_SCHEDULE_INTERLEAVED, {2, 2}, "Ettt|t|t|tttL"), {});
  const sched::timeline times = timed(order);
  CHECK(times.in_units(times.times.work()) == 6);  // 4 of 8, twice, F I and W
  sched::costs heavy;
  heavy.loss = 4;  // as 4 layers: rank 1 has 8 of 12
  const sched::timeline uneven = timed(order, heavy);
  CHECK(uneven.in_units(uneven.times.ranks[0].work) == 2 * 2 * 3 * 4 / 12.0);
  CHECK(uneven.in_units(uneven.times.ranks[1].work) == 2 * 2 * 3 * 8 / 12.0);
  CHECK(uneven.in_microbatches(uneven.times.ranks[1].peak) == 2 * (1 + 1 + 7) / 12.0);
  sched::costs given;
  given.shares = {0.3, 0.1, 0.1, 0.3};
  CHECK(price(made(VELO_SCHEDULE_INTERLEAVED, {2, 2}), given).makespan ==
        times.in_units(times.times.makespan()));
  given.shares = {1, 1};
  CHECK(failure_of([&] {
          price(made(VELO_SCHEDULE_INTERLEAVED, {2, 2}), given);
        }).argument == "costs.share_count");
}

TEST_CASE("searches know that stages are not alike, and keep to a cap of what they hold") {
  sched::costs costs;
  costs.shares = {1, 2, 1, 2};
  for (const double cap : {2.0, 3.0, 4.0}) {
    const sched::schedule found = made(VELO_SCHEDULE_AUTO, {4, 12, 1, 0, 0, 0, cap}, costs);
    CHECK(violations_of(found).empty());
    CHECK(price(found, costs).peak <= cap);
    CHECK(price(found, costs).makespan <=
          price(made(VELO_SCHEDULE_1F1B, {4, 12}), costs).makespan * (cap < 4 ? 2 : 1));
  }
  for (const velo_schedule_kind kind : {VELO_SCHEDULE_ZBH2, VELO_SCHEDULE_ZBV_GREEDY}) {
    costs.shares.assign(kind == VELO_SCHEDULE_ZBH2 ? 4 : 8, 1);
    costs.shares[1] = 3;
    CHECK(violations_of(made(kind, {4, 12}, costs)).empty());
    CHECK(failure_of([&] { made(kind, {4, 12, 0, 0, 0, 0, 1}, costs); }).code == VELO_ERR_ARGUMENT);
  }
}
