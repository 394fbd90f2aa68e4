// Faults that end a group: late, absent and disagreeing ranks, aborts, failed streams. Every rank
// gets the fault and the ranks that caused it, in time.
#include "comm/forwarding.hpp"
#include "comm/json.hpp"
#include "comm/lateness.hpp"
#include "comm/processes.hpp"
#include "comm/transport/local/local.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/shm.hpp"
#include "tests/stream_work.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

using clock_type = std::chrono::steady_clock;

double milliseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}

velo_status barrier(const local_ranks& ranks, int rank) {
  return velo_group_barrier(ranks.stream(rank), ranks.group(rank));
}

velo_status reduce(const local_ranks& ranks, int rank, std::vector<float>& x,
                   velo_reduce_op op = VELO_REDUCE_SUM) {
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = op;
  return reduce_in_place(ranks.stream(rank), ranks.group(rank), x, &how);
}

// Changes an element of this rank's result of each operation of float32.
using call = std::function<velo_status(velo_stream, velo_group, const velo_tensor& own,
                                       const velo_tensor& all)>;

class spoiling final : public forwarding {
 public:
  spoiling(std::unique_ptr<comm::transport> link, std::int64_t element)
      : forwarding(std::move(link)), element_(element) {}
  void run(const comm::operation& what, core::execution& state) override {
    forwarding::run(what, state);
    if (what.terms.out_code == VELO_DTYPE_FLOAT) static_cast<float*>(what.out)[element_] = -7;
  }

 private:
  const std::int64_t element_;
};

}  // namespace

TEST_CASE("ranks that do not come by the deadline are named on all that wait") {
  const local_ranks ranks(6, group_desc(150));
  ranks.require([&](int rank) { return barrier(ranks, rank); });
  const lateness late_by;
  std::vector<double> took(6);
  const std::vector<call_record> all = ranks.run([&](int rank) {
    if (rank == 1 || rank == 3 || rank == 4) return velo_status{VELO_OK};
    std::vector<float> x(1000, 1.0f);
    const auto begin = clock_type::now();
    const velo_status status = reduce(ranks, rank, x);
    took[at(rank)] = milliseconds_since(begin);
    return status;
  });
  for (const int rank : {0, 2, 5}) {
    const call_record& one = all[at(rank)];
    CHECK_PEER(one, 1, "ranks 1, 3, 4 not there");
    CHECK(one.argument == "group");
    CHECK(one.expected == "all_reduce of 1000 float32, sum (operation 2) within 150 ms");
    CHECK(took[at(rank)] < 250 + late_by.of_ms(2));
  }
  CHECK(std::max({took[0], took[2], took[5]}) >= 150);  // of who came first
  // A later call gets the same fault at once.
  const call_record late = record_of(barrier(ranks, 3));
  CHECK(late.code == VELO_ERR_PEER);
  CHECK(late.got == "ranks 1, 3, 4 not there");

  const json all_of_it(description_of(ranks.group(2)));
  json_t* fault = json_object_get(all_of_it.root, "fault");
  CHECK(text_of(fault, "what") == "late");
  CHECK(text_of(fault, "operation") == "all_reduce");
  CHECK(number_of(fault, "sequence") == 2);
  CHECK(number_of(fault, "bytes") == 4000);
  CHECK(json_array_size(json_object_get(fault, "ranks")) == 3);
  json_t* each = json_object_get(all_of_it.root, "ranks");
  REQUIRE(json_array_size(each) == 6);
  for (std::size_t rank = 0; rank < 6; ++rank) {
    const bool came = rank == 0 || rank == 2 || rank == 5;
    CHECK(number_of(json_array_get(each, rank), "completed") == 1);
    CHECK(number_of(json_array_get(each, rank), "arrived") == (came ? 2 : 1));
  }
}

TEST_CASE("deadlines of 20 ms are kept by collectives and by messages") {
  for (const bool sends : {false, true}) {
    const local_ranks ranks(2, group_desc(20));
    const auto begin = clock_type::now();
    float_tensor x({1000}, 1);
    const call_record one =
        record_of(sends ? velo_group_receive(ranks.stream(0), ranks.group(0), 1, &x.view)
                        : reduce(ranks, 0, x.data));
    const double took = milliseconds_since(begin);
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == 1);
    CHECK(one.expected.find("within 20 ms") != std::string::npos);
    CHECK(took >= 20);
    CHECK(took < 1000);  // of a machine that is busy; alone it takes 20.1
  }
}

TEST_CASE("an abort from another thread ends the collectives of all ranks, and more than once") {
  const local_ranks ranks(3);
  const lateness late_by;
  const auto begin = clock_type::now();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    velo_group_abort(ranks.group(2));
    velo_group_abort(ranks.group(2));
    velo_group_abort(ranks.group(0));
  });
  const std::vector<call_record> all =
      ranks.run([&](int rank) { return rank == 2 ? velo_status{VELO_OK} : barrier(ranks, rank); });
  other.join();
  CHECK(milliseconds_since(begin) < 150 + late_by.of_ms(4));
  for (const int rank : {0, 1}) {
    CHECK_PEER(all[at(rank)], 2, "an abort by rank 2");
  }
  CHECK(record_of(barrier(ranks, 2)).code == VELO_ERR_PEER);
}

TEST_CASE("an abort ends what waits in a queue, and the stream says so") {
  const local_ranks ranks(2);
  velo_stream queue = ranks.context(0).new_stream();
  velo_event done = ranks.context(0).new_event();
  REQUIRE(velo_group_barrier(queue, ranks.group(0)) == VELO_OK);
  REQUIRE(velo_group_barrier(queue, ranks.group(0)) == VELO_OK);
  REQUIRE(velo_event_record(done, queue) == VELO_OK);
  REQUIRE(velo_group_abort(ranks.group(0)) == VELO_OK);
  CHECK(velo_event_synchronize(done, 1000000000) == VELO_OK);
  const call_record kept = record_of(velo_stream_synchronize(queue));
  CHECK(kept.code == VELO_ERR_PEER);
  CHECK(kept.rank == 0);
  CHECK(velo_stream_clear(queue) == VELO_OK);
}

TEST_CASE("ranks that call something else are found, the few among the many") {
  struct variant {
    const char* what;
    std::function<velo_status(const local_ranks&, int)> odd;
    std::string got;
  };
  std::vector<float> memory[8];
  const variant variants[] = {
      {"an operation", [&](const local_ranks& all, int rank) { return barrier(all, rank); },
       "barrier"},
      {"a count",
       [&](const local_ranks& all, int rank) {
         memory[rank].assign(101, 1.0f);
         return reduce(all, rank, memory[rank]);
       },
       "all_reduce of 101 float32, sum"},
      {"a reduction",
       [&](const local_ranks& all, int rank) {
         memory[rank].assign(100, 1.0f);
         return reduce(all, rank, memory[rank], VELO_REDUCE_MAX);
       },
       "all_reduce of 100 float32, max"},
      {"a dtype",
       [&](const local_ranks& all, int rank) {
         std::vector<std::int32_t> x(100);
         return reduce_in_place(all.stream(rank), all.group(rank), x);
       },
       "all_reduce of 100 int32, sum"},
      {"a scale",
       [&](const local_ranks& all, int rank) {
         memory[rank].assign(100, 1.0f);
         velo_reduction how = VELO_REDUCTION_INIT;
         how.scale = 0.5;
         return reduce_in_place(all.stream(rank), all.group(rank), memory[rank], &how);
       },
       "all_reduce of 100 float32, sum scaled by 0.5"}};
  for (const variant& v : variants) {
    INFO(v.what);
    const local_ranks ranks(4);
    const std::vector<call_record> all = ranks.run([&](int rank) {
      if (rank == 2) return v.odd(ranks, rank);
      memory[rank].assign(100, 1.0f);
      return reduce(ranks, rank, memory[rank]);
    });
    for (const call_record& one : all) {
      CHECK_PEER(one, 2, "rank 2 with " + v.got);
      CHECK(one.expected == "all_reduce of 100 float32, sum (operation 1)");
    }
    CHECK(memory[0] == std::vector<float>(100, 1.0f));
  }
}

TEST_CASE("a rank that leaves is named by those that need it, and not by those that do not") {
  const local_ranks ranks(3);
  ranks.require([&](int rank) {
    std::vector<float> x(100000, 1.0f);
    return reduce(ranks, rank, x);
  });
  const lateness late_by;
  const auto begin = clock_type::now();
  const std::vector<call_record> all = ranks.run([&](int rank) {
    if (rank != 1) return barrier(ranks, rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    velo_group_destroy(ranks.group(1));
    return velo_status{VELO_OK};
  });
  CHECK(milliseconds_since(begin) < 150 + late_by.of_ms(4));
  for (const int rank : {0, 2}) {
    CHECK_PEER(all[at(rank)], 1, "rank 1 that left the group");
  }
}

TEST_CASE("a call that its stream drops after a failure fails on the ranks that would wait") {
  const local_ranks ranks(3);
  velo_stream queue = ranks.context(1).new_stream();
  std::atomic<bool> go{false};
  hold(queue, go);
  queue_failure(queue);
  REQUIRE(velo_group_barrier(queue, ranks.group(1)) == VELO_OK);
  const lateness late_by;
  const auto begin = clock_type::now();
  const std::vector<call_record> all = ranks.run([&](int rank) {
    if (rank != 1) return barrier(ranks, rank);
    go = true;
    return velo_status{VELO_OK};
  });
  CHECK(milliseconds_since(begin) < 150 + late_by.of_ms(4));
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_IO);
  for (const int rank : {0, 2}) {
    const call_record& one = all[at(rank)];
    CHECK_PEER(one, 1, "rank 1 that could not do its part");
    CHECK(one.cause == "a failure of its stream before");
  }
}

TEST_CASE("in a group of one rank a dropped call leaves those that were called before it") {
  const local_ranks ranks(1);
  const velo_group alone = ranks.group(0);
  velo_stream early = ranks.context(0).new_stream(), late = ranks.context(0).new_stream();
  std::atomic<bool> called{false}, go{false};
  hold(early, go);
  hold(late, called);
  queue_failure(late);
  for (int round = 0; round < 2; ++round) {
    CHECK(velo_group_barrier(early, alone) == VELO_OK);
    CHECK(velo_group_barrier(late, alone) == VELO_OK);
  }
  called = true;
  CHECK(velo_stream_synchronize(late) == VELO_ERR_IO);  // without a wait for those before
  CHECK(info_of(alone).called == 4);
  CHECK(info_of(alone).finished == 2);
  go = true;
  velo_event done = ranks.context(0).new_event();
  REQUIRE(velo_event_record(done, early) == VELO_OK);
  const velo_status came = velo_event_synchronize(done, 1000000000);
  CHECK(came == VELO_OK);
  if (came != VELO_OK) velo_group_abort(alone);  // or it would wait for ever
  CHECK(velo_stream_synchronize(early) == VELO_OK);
  CHECK(barrier(ranks, 0) == VELO_OK);
  CHECK(info_of(alone).finished == info_of(alone).called);
}

TEST_CASE("results that differ are found, named by rank, operation and sequence") {
  for (const bool verify : {true, false}) {
    velo_group_desc desc = group_desc();
    desc.flags = verify ? VELO_GROUP_VERIFY : 0;
    const local_ranks ranks(3, desc);
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) -> velo_status {
      const velo_reduce_fn fold = [](void* user, const void*, void* total, std::int64_t count,
                                     const velo_dtype*) {
        std::memset(total, *static_cast<int*>(user), static_cast<std::size_t>(4 * count));
      };
      std::vector<float> x(10, 1.0f);
      int value = 3;
      velo_reduction how = VELO_REDUCTION_INIT;
      how.op = VELO_REDUCE_CUSTOM, how.fn = fold, how.user = &value;
      const auto call = [&] { return reduce_in_place(me.stream, me.group, x, &how); };
      velo_status done = call();
      if (done == VELO_OK) done = barrier(ranks, me.rank);
      if (me.rank == 1) value = 4;  // a rank that computes something else
      if (done == VELO_OK) done = call();
      return done;
    });
    for (const call_record& one : all) {
      CHECK(one.code == (verify ? VELO_ERR_PEER : VELO_OK));
      if (!verify) continue;
      CHECK(one.rank == 1);
      CHECK(one.got == "rank 1 with another result");
      CHECK(one.expected == "all_reduce of 10 float32, custom (operation 4)");
    }
  }
}

TEST_CASE("results that differ are found of every collective that leaves the same on all ranks") {
  const std::int64_t counts[] = {2, 4, 1}, offsets[] = {0, 3, 9};  // element 2 is nobody's
  struct variant {
    std::string name;
    call run;
    std::int64_t spoiled;  // which element of rank 1's result
    bool is_result;
  };
  const call sum = [](velo_stream on, velo_group in, const velo_tensor&, const velo_tensor& all) {
    return velo_group_all_reduce(on, in, nullptr, &all, &all);
  };
  const call copy = [](velo_stream on, velo_group in, const velo_tensor&, const velo_tensor& all) {
    return velo_group_broadcast(on, in, 2, &all);
  };
  const call gather = [&](velo_stream on, velo_group in, const velo_tensor& own,
                          const velo_tensor& all) {
    return velo_group_all_gather_v(on, in, &own, counts, offsets, &all);
  };
  const variant variants[] = {{"all_reduce of 10 float32, sum", sum, 9, true},
                              {"broadcast of 10 float32 from rank 2", copy, 0, true},
                              {"all_gather of ", gather, 6, true},
                              {"all_gather of ", gather, 2, false}};
  for (const variant& v : variants)
    for (const bool verifies : {true, false}) {
      INFO(v.name << ", element " << v.spoiled);
      const local_ranks ranks(3);  // for their contexts
      auto links = comm::make_local(3, comm::shared_area::slot_for(65536, 3), 20000000000);
      links[1] = std::make_unique<spoiling>(std::move(links[1]), v.spoiled);
      std::vector<velo_group> groups;
      for (int rank = 0; rank < 3; ++rank)
        groups.push_back(
            group_over(ranks.context(rank), std::move(links[at(rank)]), "spoiled", verifies));
      const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
        const float_tensor own({counts[me.rank]}, 1), whole({10}, 1);
        const velo_status done = velo_group_barrier(me.stream, groups[at(me.rank)]);
        if (done != VELO_OK) return done;
        return v.run(me.stream, groups[at(me.rank)], own.view, whole.view);
      });
      for (const velo_group one : groups) velo_group_destroy(one);
      for (const call_record& one : all) {
        const bool finds = verifies && v.is_result;
        CHECK(one.code == (finds ? VELO_ERR_PEER : VELO_OK));
        if (!finds) continue;
        CHECK(one.rank == 1);
        CHECK(one.got == "rank 1 with another result");
        CHECK(one.expected.find(v.name) == 0);
        CHECK(one.expected.find("(operation 2)") != std::string::npos);
      }
    }
}

TEST_CASE("a process whose result differs is found by all four, with the call") {
  struct variant {
    const char* name;
    call run;
  };
  const variant variants[] = {
      {"all_reduce of 5000 float32, sum",
       [](velo_stream on, velo_group in, const velo_tensor&, const velo_tensor& all) {
         return velo_group_all_reduce(on, in, nullptr, &all, &all);
       }},
      {"broadcast of 5000 float32 from rank 1",
       [](velo_stream on, velo_group in, const velo_tensor&, const velo_tensor& all) {
         return velo_group_broadcast(on, in, 1, &all);
       }},
      {"all_gather of 1250 float32",
       [](velo_stream on, velo_group in, const velo_tensor& own, const velo_tensor& all) {
         return velo_group_all_gather(on, in, &own, &all);
       }}};
  for (const variant& v : variants)
    for (const bool verifies : {true, false}) {
      const std::string name = processes::name();
      processes ranks;
      for (int rank = 0; rank < 4; ++rank)
        ranks.start([&, rank] {
          rank_of_group me;
          velo_status done = open_context(me);
          if (done != VELO_OK) return ending_of(done);
          auto link =
              comm::make_shm({name, rank, 4, 20000000000, comm::shared_area::slot_for(65536, 4)});
          if (rank == 2) link = std::make_unique<spoiling>(std::move(link), 1);
          me.group = group_over(me.context, std::move(link), "spoiled", verifies);
          const float_tensor own({1250}, 1), all({5000}, 1);
          done = velo_group_barrier(me.stream, me.group);
          if (done == VELO_OK) done = v.run(me.stream, me.group, own.view, all.view);
          ending report = ending_of(done);
          velo_group_destroy(me.group);
          velo_context_destroy(me.context);
          return report;
        });
      for (const ending& one : ranks.wait()) {
        INFO(v.name << ": " << one);
        CHECK(one.code == (verifies ? VELO_ERR_PEER : VELO_OK));
        if (!verifies) continue;
        CHECK(one.rank == 2);
        CHECK(one.got == "rank 2 with another result");
        CHECK(one.expected == v.name + std::string(" (operation 2) in spoiled"));
      }
    }
}
