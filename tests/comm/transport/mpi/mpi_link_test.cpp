// Groups over MPI where what arrives, and when, is the test's: ranks are threads over a plugin of
// the tests. Who is named, and which rank fails, whatever comes first.
#include <cstdlib>

#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;
namespace comm = velo::comm;

namespace {

using comm::flow;
constexpr int notice_tag = 0;  // of the progress queue

velo_status sum(const rank_over_mpi& by, std::vector<float>& x) {
  return reduce_in_place(by.stream, by.group, x);
}

}  // namespace

TEST_CASE("a rank that leaves behind a call has been in it, whoever reads that it left") {
  scripted script;
  rank_over_mpi ranks[2];
  const int job = new_job();
  std::atomic<bool> goes{false}, is_gone{false};
  velo_status ends[2] = {}, made[2] = {};
  std::atomic<int> met{0};
  int looks = 0;
  script.looked = [&](int to, int from, int tag) {
    // Beyond the first looks, which are quick: the other rank calls, and leaves, and a thread of
    // this rank's host asks for the state of the group.
    if (met < 2 || to != 0 || from != 1 || tag != tag_of(flow::opening) || ++looks != 300) return;
    goes = true;
    while (!is_gone) std::this_thread::yield();
    std::thread asks([&] {
      velo_group_info info = VELO_GROUP_INFO_INIT;
      velo_group_get_info(ranks[0].group, &info);
    });
    asks.join();
  };
  on_threads(2, [&](int rank) {
    made[rank] = ranks[rank].join(job, 2, rank);
    ++met;
    while (met < 2 || (rank == 1 && !goes)) std::this_thread::yield();
    std::vector<float> x(10, 1.0f);
    ends[rank] = sum(ranks[rank], x);
    if (rank == 0) return;
    velo_group_destroy(ranks[1].group);
    is_gone = true;
  });
  for (const int rank : {0, 1}) {
    CHECK(made[rank] == VELO_OK);
    CHECK(ends[rank] == VELO_OK);
  }
  CHECK(is_gone);
}

TEST_CASE("a group that one rank aborts while another still meets is made on all, and has ended") {
  scripted script;
  rank_over_mpi ranks[3];
  const int job = new_job();
  std::atomic<bool> is_aborted{false};
  script.holds = [&](int from, int to, int tag) {  // rank 2 meets rank 0 last
    return !is_aborted && from == 0 && to == 2 && tag == tag_of(flow::opening);
  };
  call_record made[3], ends[3];
  on_threads(3, [&](int rank) {
    made[rank] = record_of(ranks[rank].join(job, 3, rank));
    if (rank == 1) {
      velo_group_abort(ranks[1].group);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // rank 2 hears of it
      is_aborted = true;
    }
    while (!is_aborted) std::this_thread::yield();
    std::vector<float> x(10, 1.0f);
    ends[rank] = record_of(sum(ranks[rank], x));
  });
  for (const int rank : {0, 1, 2}) {
    INFO(made[rank].got);
    CHECK(made[rank].code == VELO_OK);
    CHECK(ends[rank].got == "an abort by rank 1");
  }
}

// Ranks 0 and 1 of one host, 2 and 3 of another. Rank 2 waits for rank 0 until the timeout, for its
// data or for its opening, and rank 3 inside the host for rank 2, by which alone it hears of an
// abort.
TEST_CASE("a fault that reaches a rank by way of its host is the one that ended the group") {
  for (const auto& [kind, aborts] :
       {std::pair{flow::data, 2}, {flow::data, 0}, {flow::opening, 0}}) {
    INFO("rank " << aborts << ", tag " << tag_of(kind));
    const int job = new_job();
    scripted script;
    rank_over_mpi ranks[4];
    std::atomic<int> met{0};
    std::atomic<bool> waits{false};
    script.holds = [&, kind = kind](int from, int to, int tag) {
      return (met == 4 && from == 0 && to == 2 && tag == tag_of(kind)) ||
             (to == 3 && tag == notice_tag);
    };
    script.looked = [&, kind = kind](int to, int from, int tag) {
      if (met == 4 && to == 2 && from == 0 && tag == tag_of(kind)) waits = true;
    };
    call_record ends[4];
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 4; ++rank)
      threads.push_back(start_on_host(script, "0011", rank, [&, rank] {
        ends[rank] = record_of(ranks[rank].join(job, 4, rank));
        ++met;
        while (met < 4) std::this_thread::yield();
        std::vector<float> x(100000, 1.0f);
        if (ends[rank].code == VELO_OK) ends[rank] = record_of(sum(ranks[rank], x));
      }));
    while (!waits) std::this_thread::yield();
    for (int rank = 0; rank < 4; ++rank)  // rank 3 gets all that it needs to go inside
      while (script.openings[rank] < 6) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // rank 3 is inside
    CHECK(velo_group_abort(ranks[aborts].group) == VELO_OK);
    for (std::thread& one : threads) one.join();
    for (const call_record& one : ends) {
      INFO(one);
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.got == "an abort by rank " + std::to_string(aborts));
    }
  }
}
