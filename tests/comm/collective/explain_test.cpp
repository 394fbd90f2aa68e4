// The algorithm of a collective and its predicted time: the explanation equals the later run.
#include "comm/group/measured_times.hpp"
#include "comm/json.hpp"
#include "comm/transports.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

std::string explained(velo_collective one) {
  return written([one](char* text, std::uint64_t capacity, std::uint64_t* needed) {
    return velo_collective_explain(one, text, capacity, needed);
  });
}

std::int64_t number_in(const std::string& json, const std::string& name, std::size_t from = 0) {
  const std::size_t at = json.find("\"" + name + "\":", from);
  return at == std::string::npos ? -1 : std::atoll(json.c_str() + at + name.size() + 3);
}

// Steps through shared memory so far on this rank.
std::int64_t steps_of(velo_group group, int rank) {
  const std::string all = description_of(group);
  return number_in(all, "steps", all.find(R"({"rank":)" + std::to_string(rank) + ","));
}

bool chose(const std::string& json, const std::string& way) {
  return json.find(R"({"name":")" + way + R"(","chosen":true)") != std::string::npos;
}

struct planned {
  velo_collective_kind kind;
  std::int64_t count;  // of a part
};

// 0: as explained. Each part one element longer than the last where parts are uneven.
answer hold_to_account(const rank_of_group& me, const planned& what, const std::string& is) {
  std::vector<std::int64_t> counts;
  std::int64_t whole = 0;
  const bool uneven = is.find("_v") != std::string::npos;
  for (int rank = 0; rank < me.size; ++rank) {
    counts.push_back(what.count + (uneven && what.kind != VELO_COLLECTIVE_ALL_TO_ALL_V ? rank : 0));
    whole += counts.back();
  }
  const std::int64_t part = counts[at(me.rank)];
  const bool gives_part = is.find("gather") != std::string::npos,
             gets_part = is.find("scatter") != std::string::npos;
  std::vector<float> in(static_cast<std::size_t>(whole), 1), out(in);
  const std::int64_t gives = gives_part ? part : whole, gets = gets_part ? part : whole;
  const velo_tensor x = view_of(in.data(), f32, gives), y = view_of(out.data(), f32, gets);
  velo_collective_desc desc = collective_of(what.kind, &x, &y);
  desc.in_counts = desc.out_counts = counts.data();
  if (what.kind == VELO_COLLECTIVE_BARRIER) desc.in = desc.out = nullptr;
  velo_collective one = nullptr;
  velo_status done = velo_collective_create(me.group, &desc, &one);
  if (done != VELO_OK) return {done, 0};
  const std::string explanation = explained(one);
  const std::int64_t before = steps_of(me.group, me.rank);
  done = velo_collective_start(me.stream, one);
  const std::int64_t steps = steps_of(me.group, me.rank) - before;
  velo_collective_destroy(one);
  return {done, number_in(explanation, "steps") - steps};
}

struct named_kind {
  const char* name;
  velo_collective_kind kind;
};
constexpr named_kind collectives[] = {{"barrier", VELO_COLLECTIVE_BARRIER},
                                      {"all_reduce", VELO_COLLECTIVE_ALL_REDUCE},
                                      {"reduce", VELO_COLLECTIVE_REDUCE},
                                      {"broadcast", VELO_COLLECTIVE_BROADCAST},
                                      {"all_gather", VELO_COLLECTIVE_ALL_GATHER},
                                      {"all_gather_v", VELO_COLLECTIVE_ALL_GATHER_V},
                                      {"reduce_scatter", VELO_COLLECTIVE_REDUCE_SCATTER},
                                      {"reduce_scatter_v", VELO_COLLECTIVE_REDUCE_SCATTER_V},
                                      {"all_to_all", VELO_COLLECTIVE_ALL_TO_ALL},
                                      {"all_to_all_v", VELO_COLLECTIVE_ALL_TO_ALL_V},
                                      {"gather", VELO_COLLECTIVE_GATHER},
                                      {"gather_v", VELO_COLLECTIVE_GATHER_V},
                                      {"scatter", VELO_COLLECTIVE_SCATTER},
                                      {"scatter_v", VELO_COLLECTIVE_SCATTER_V}};

}  // namespace

TEST_CASE("the explained steps of a collective are those that it takes") {
  for (const int size : {2, 3, 5})
    for (const named_kind& is : collectives)
      for (const std::int64_t count : {1, 40, 3000, 20000, 300001}) {
        const planned what{is.kind, count};
        for (const outcome& one : over_threads(size, 20000, [&](const rank_of_group& me) {
               return hold_to_account(me, what, is.name);
             })) {
          INFO(is.name << " of " << size << " ranks, " << count << ": " << one);
          REQUIRE(one.code == VELO_OK);
          CHECK(one.value == 0);
        }
      }
}

TEST_CASE("a way is chosen over every transport, with reasons, and times once they are measured") {
  for (const transport_case& over : every_transport)
    for (const int size : {1, 4}) {
      const std::vector<outcome> all = over.run(size, 20000, [](const rank_of_group& me) -> answer {
        std::int64_t wrong = 0;
        std::int64_t last = 0;
        for (const bool measured : {false, true}) {
          if (measured) {
            const velo_status done = velo_group_measure(me.stream, me.group);
            if (done != VELO_OK) return {done, -1};
          }
          for (const std::int64_t count : {10, 5000, 4000000}) {
            const float_tensor x({count});
            const velo_collective_desc desc =
                collective_of(VELO_COLLECTIVE_ALL_REDUCE, &x.view, &x.view);
            velo_collective one = nullptr;
            const velo_status done = velo_collective_create(me.group, &desc, &one);
            if (done != VELO_OK) return {done, -2};
            const std::string explanation = explained(one);
            velo_collective_destroy(one);
            std::size_t chosen = 0;
            for (std::size_t i = explanation.find(R"("chosen":true)"); i != std::string::npos;
                 i = explanation.find(R"("chosen":true)", i + 1))
              ++chosen;
            wrong += chosen != 1;
            wrong += number_in(explanation, "bytes") != 4 * count;
            wrong += explanation.find(R"("reason":"")") != std::string::npos;
            const bool knows = explanation.find(R"("predicted_ns":null)") == std::string::npos;
            wrong += knows != measured;
            if (measured) {  // more takes longer
              wrong += number_in(explanation, "predicted_ns") < last;
              wrong +=
                  number_in(explanation, "predicted_ns") < number_in(explanation, "latency_ns");
              last = number_in(explanation, "predicted_ns");
            }
          }
        }
        return {velo_group_barrier(me.stream, me.group), wrong};
      });
      for (const outcome& one : all) {
        INFO(over.name << ", " << size << " ranks: " << one);
        REQUIRE(one.code == VELO_OK);
        CHECK(one.value == 0);
      }
    }
}

TEST_CASE("a measurement that other work lengthened does not make less take longer than more") {
  using comm::measured_times;
  measured_times all;
  for (std::size_t i = 0; i < measured_times::points; ++i)
    for (std::size_t kind = 0; kind < measured_times::kind_count; ++kind)
      all.at(kind, i) = i == 2 ? 1e-3 : 1e-6 * static_cast<double>(i + 1);
  all.settle();
  double last = all.latency(comm::collective::all_reduce);
  CHECK(last == 1e-6);
  for (const std::int64_t bytes : measured_times::sizes) {
    const double next = all.predict(comm::collective::all_reduce, bytes);
    CHECK(next >= last);
    CHECK(next < 1e-5);
    last = next;
  }
}

TEST_CASE("large operations go by way of hosts if there are two, and never if there is one") {
  const std::int64_t many = 100000, few = 10;
  for (const bool two : {true, false})
    for (const std::int64_t count : {few, many}) {
      const std::vector<outcome> all =
          over_hosts(two ? "0011" : "0000", 20000, [&](const rank_of_group& me) -> answer {
            const float_tensor x({count});
            const velo_collective_desc desc =
                collective_of(VELO_COLLECTIVE_BROADCAST, &x.view, nullptr);
            velo_collective one = nullptr;
            const velo_status done = velo_collective_create(me.group, &desc, &one);
            const std::string explanation = explained(one);
            velo_collective_destroy(one);
            return {done, chose(explanation, "by way of hosts") ? 1 : 0};
          });
      for (const outcome& one : all) CHECK(one.value == (two && count == many ? 1 : 0));
    }
}

TEST_CASE("a message to itself is a copy, others go through slots; a plan outlives its group") {
  const local_ranks ranks(2);
  const float_tensor x({100});
  for (const int to : {0, 1}) {
    const velo_collective_desc desc = collective_of(VELO_COLLECTIVE_SEND, &x.view, nullptr, to);
    velo_collective one = nullptr;
    REQUIRE(velo_collective_create(ranks.group(0), &desc, &one) == VELO_OK);
    CHECK(chose(explained(one), to == 0 ? "copy" : "channel"));
    velo_collective_destroy(one);
  }
  group_of_one alone;
  const velo_collective_desc barrier = VELO_COLLECTIVE_DESC_INIT;
  velo_collective late = nullptr;
  REQUIRE(velo_collective_create(alone.group, &barrier, &late) == VELO_OK);
  velo_group_destroy(std::exchange(alone.group, nullptr));
  CHECK(velo_collective_explain(late, nullptr, 0, nullptr) == VELO_ERR_HANDLE);
  velo_collective_destroy(late);
}

TEST_CASE("a rank that measures while another calls a barrier fails with the mismatch") {
  const local_ranks ranks(2);
  const std::vector<call_record> all = ranks.run([&](int rank) {
    return rank == 0 ? velo_group_measure(ranks.stream(0), ranks.group(0))
                     : velo_group_barrier(ranks.stream(1), ranks.group(1));
  });
  for (const call_record& one : all) {
    CHECK_PEER(one, 1, "rank 1 with barrier");
    CHECK(one.expected == "measurement (operation 1)");
  }
}
