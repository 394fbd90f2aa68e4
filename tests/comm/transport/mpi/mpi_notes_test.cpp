// Notes of waits over MPI where what arrives, and when, is the test's: ranks are threads over a
// plugin of the tests.
#include <chrono>

#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;
namespace comm = velo::comm;

namespace {

constexpr std::int64_t timeout_ms = 600;

bool is_of_flow(int tag, comm::flow kind) {  // in any group
  return tag % 4 == comm::mpi_progress::tag(0, static_cast<int>(kind)) % 4;
}

void sleep_ms(std::int64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// A part under a label, or the status of making it.
struct part_of {
  part_of(velo_group parent, const std::vector<std::int32_t>& ranks, const char* label,
          std::int64_t within_ms = timeout_ms) {
    velo_group_desc desc = group_desc(within_ms);
    desc.label = label;
    status = velo_group_create_part(parent, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                    &desc, &group);
  }
  ~part_of() { velo_group_destroy(group); }
  part_of(const part_of&) = delete;

  velo_group group = nullptr;
  velo_status status;
};

// Holds the first data from rank 0 to rank 2 back for two thirds of the timeout.
class late_data {
 public:
  bool holds(int from, int to, int tag) {
    if (from != 0 || to != 2 || !is_of_flow(tag, comm::flow::data)) return false;
    std::int64_t none = 0;
    const std::int64_t now = comm::now_ns();
    return since_.compare_exchange_strong(none, now) || now - none < timeout_ms * 2000000 / 3;
  }
  void begin() { since_ = 0; }

 private:
  std::atomic<std::int64_t> since_{0};
};

}  // namespace

// Ranks 0 and 1 of one host, 2 and 3 of another. In each of four parts, which all live on, rank 3
// waits long inside its host. Then rank 2 waits for 3, which waits for 0, which does not come.
TEST_CASE("a rank notes its waits after long waits inside its host, in however many parts") {
  scripted script;
  late_data late;
  script.holds = [&](int from, int to, int tag) { return late.holds(from, to, tag); };
  const int job = new_job();
  rank_over_mpi ranks[4];
  call_record sums[4], ends[4];
  std::atomic<int> waiting{2};
  const auto wait_in_turn = [&](int rank) {
    const rank_over_mpi& me = ranks[rank];
    std::vector<std::unique_ptr<part_of>> parts;
    for (const char* label : {"first", "second", "third", "fourth"}) {
      parts.push_back(std::make_unique<part_of>(me.group, std::vector{0, 1, 2, 3}, label));
      if (rank == 0) late.begin();
      std::vector<float> x(100000, 1.0f);
      sums[rank] = record_of(reduce_in_place(me.stream, parts.back()->group, x));
      if (sums[rank].code != VELO_OK) return;
    }
    if (rank == 1) return;
    if (rank == 2) {
      const part_of near(me.group, {2, 3}, "near");
      ends[2] = record_of(velo_group_barrier(me.stream, near.group));
    } else if (rank == 3) {
      const part_of near(me.group, {2, 3}, "near"), far(me.group, {0, 3}, "far");
      sleep_ms(50);
      ends[3] = record_of(velo_group_barrier(me.stream, far.group));
    } else {
      const part_of far(me.group, {0, 3}, "far");
      while (waiting > 0) sleep_ms(1);
    }
    --waiting;
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.push_back(start_on_host(script, "0011", rank, [&, rank] {
      sums[rank] = record_of(ranks[rank].join(job, 4, rank));
      if (sums[rank].code == VELO_OK) wait_in_turn(rank);
      if (sums[rank].code != VELO_OK) waiting = 0;
    }));
  for (std::thread& one : threads) one.join();
  for (const call_record& one : sums) CHECK_OK(one);
  for (const int rank : {2, 3}) {
    INFO("rank " << rank << ": " << ends[rank]);
    CHECK(ends[rank].code == VELO_ERR_PEER);
    CHECK(ends[rank].got == "rank 0 not there");
    CHECK(ends[rank].expected == "barrier (operation 1) in far within 600 ms");
  }
}

// Rank 2 is still making the group of all, for an opening of rank 0 that is held back, when rank 0
// misses rank 1 in a part. In its first call rank 2 waits for both.
TEST_CASE("a rank that is making its first group hears which fault another has met") {
  constexpr int notice_tag = 0;
  scripted script;
  std::atomic<bool> has_met{false}, is_known{false}, is_over{false};
  script.holds = [&](int from, int to, int tag) {
    return !is_known && from == 0 && to == 2 && tag == tag_of(comm::flow::opening);
  };
  script.looked = [&](int to, int from, int tag) {  // it has read all notices
    if (has_met && to == 2 && from == -1 && tag == notice_tag) is_known = true;
  };
  rank_over_mpi ranks[3];
  const int job = new_job();
  call_record made[3], ends[3];
  on_threads(3, [&](int rank) {
    const rank_over_mpi& me = ranks[rank];
    made[rank] = record_of(ranks[rank].join(job, 3, rank, group_desc(1000)));
    if (made[rank].code != VELO_OK) {
      is_known = is_over = true;
    } else if (rank == 2) {
      ends[2] = record_of(velo_group_barrier(me.stream, me.group));
      is_over = true;
    } else {
      const part_of near(me.group, {0, 1}, "near", 200);
      if (rank == 0) ends[0] = record_of(velo_group_barrier(me.stream, near.group));
      if (rank == 0) has_met = true;
      while (!is_over) sleep_ms(1);
    }
  });
  for (const call_record& one : made) CHECK_OK(one);
  for (const int rank : {0, 2}) {
    INFO("rank " << rank << ": " << ends[rank]);
    CHECK(ends[rank].code == VELO_ERR_PEER);
    CHECK(ends[rank].got == "rank 1 not there");
  }
}
