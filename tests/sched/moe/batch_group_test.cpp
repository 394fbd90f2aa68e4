// Routings with a capacity of the micro-batch: a batch group that lacks ranks of the dispatcher's
// group; a failure in the batch group, which ends the group of the experts, too; a queue without
// room for all of a call's work. Ranks are threads and processes.
#include "comm/processes.hpp"
#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

velo_dispatcher_desc limited_desc() {
  velo_dispatcher_desc desc = desc_of(2, 1);
  desc.capacity_rule = VELO_CAPACITY_ROWS, desc.capacity = 2, desc.pad = 1;
  desc.drop_policy = VELO_DROP_POLICY_POSITION;
  return desc;
}

// A group of this rank alone.
class group_alone {
 public:
  explicit group_alone(velo_context context) {
    const velo_group_desc desc = group_desc();
    made_ = velo_group_create_local(&context, 1, &desc, &group_);
  }
  ~group_alone() { velo_group_destroy(group_); }
  group_alone(const group_alone&) = delete;
  group_alone& operator=(const group_alone&) = delete;
  velo_status made() const { return made_; }
  velo_group get() const { return group_; }

 private:
  velo_group group_ = nullptr;
  velo_status made_;
};

// Two tokens that choose an expert, in a layer whose batch group is this rank alone.
velo_status set_alone(const rank_of_group& me, std::int32_t expert) {
  const group_alone alone(me.context);
  if (alone.made() != VELO_OK) return alone.made();
  velo_dispatcher_desc desc = limited_desc();
  desc.batch_group = alone.get();
  const open_layer of(me.group, desc);
  const std::int32_t chosen[] = {expert, expert};
  const std::int64_t shape[] = {2, 1};
  const velo_tensor choices = view_of(chosen, i32, shape);
  return velo_routing_set(of.routing, me.stream, &choices, nullptr, nullptr);
}

void check_beyond(const call_record& one) {
  CHECK(one.code == VELO_ERR_ARGUMENT);
  CHECK(one.argument == "desc.batch_group");
  CHECK(one.got == "others: expert 0 has more rows than its capacity");
}

}  // namespace

TEST_CASE("a batch group that lacks ranks is refused by all where an expert gets too many rows") {
  const local_ranks ranks(2);
  const std::vector<call_record> ends =
      ranks.run([](const rank_of_group& me) { return set_alone(me, 0); });
  for (const call_record& one : ends) check_beyond(one);
  // No group has ended, and experts that do not get too many rows may go on.
  ranks.require([](const rank_of_group& me) { return set_alone(me, me.rank); });
}

TEST_CASE("processes refuse a batch group that lacks ranks, too") {
  processes ranks;
  ranks.start_all(2, group_desc(),
                  [](const rank_of_group& me) { return ending_of(set_alone(me, 0)); });
  for (const ending& one : ranks.wait()) check_beyond(one);
}

TEST_CASE("a failure in a batch group ends the group of the experts, whose ranks would wait") {
  const local_ranks ranks(2);
  const std::vector<call_record> ends =
      ranks.run([](const rank_of_group& me) { return set_alone(me, me.rank == 1 ? 2 : 0); });
  INFO(ends[0]);
  CHECK(ends[1].code == VELO_ERR_ARGUMENT);
  CHECK(ends[1].argument == "choices[0][0]");
  CHECK(ends[0].code == VELO_ERR_PEER);
  CHECK(ends[0].rank == 1);
  CHECK(ends[0].cause.find("a routing could not be set") != std::string::npos);
}

TEST_CASE("a queue without room for all work of a routing takes none of it, and ends no group") {
  for (const bool limited : {false, true}) {
    const local_ranks ranks(2);
    const velo_stream queues[] = {ranks.context(0).new_stream(), ranks.context(1).new_stream()};
    const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
      const open_layer of(me.group, limited ? limited_desc() : desc_of(2, 1));
      const std::int32_t chosen[] = {0, 1};
      const std::int64_t shape[] = {2, 1};
      const velo_tensor choices = view_of(chosen, i32, shape);
      const auto set = [&] {
        return velo_routing_set(of.routing, queues[me.rank], &choices, nullptr, nullptr);
      };
      velo_status done = velo_config_set(me.context, "queue", limited ? "2" : "1");
      for (int i = 0; i < 3 && done == VELO_OK; ++i)
        if (set() != VELO_ERR_FULL) done = VELO_ERR_INTERNAL;
      if (done == VELO_OK) done = velo_config_set(me.context, "queue", limited ? "3" : "2");
      if (done == VELO_OK) done = velo_stream_synchronize(queues[me.rank]);
      if (done == VELO_OK) done = set();
      std::int64_t rows = 0;
      return done != VELO_OK ? done : velo_routing_get_rows(of.routing, nullptr, 0, &rows);
    });
    for (const call_record& one : ends) CHECK_OK(one);
  }
}
