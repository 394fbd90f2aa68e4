// Ranks over MPI that wait in different parts: all name the rank that none of them has heard of,
// never one that itself waits in another part.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "comm/mpi/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t timeout_ms = 1000;

// A part of the job under a label.
struct part_of {
  part_of(velo_group parent, const std::vector<std::int32_t>& ranks, const char* label) {
    velo_group_desc desc = VELO_GROUP_DESC_INIT;
    desc.timeout_ns = timeout_ms * 1000000;
    desc.label = label;
    status = velo_group_create_part(parent, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                    &desc, &group);
    const call_record why = last_record();
    INFO(why);
    CHECK(status == VELO_OK);
  }
  ~part_of() { velo_group_destroy(group); }
  part_of(const part_of&) = delete;

  velo_group group = nullptr;
  velo_status status;
};

void sleep_ms(std::int64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// VELO_TEST_HOSTS: a letter for the host of each rank, which it pretends to be on.
void choose_host() {
  const char* hosts = std::getenv("VELO_TEST_HOSTS");
  if (hosts == nullptr) return;
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  setenv("VELO_MPI_HOST", std::string(1, hosts[rank]).c_str(), 1);
}

// The first wait of a rank: a barrier, a message that does not come, or a sum by way of hosts.
velo_status wait_in(const rank_of_group& me, velo_group in, int kind) {
  if (kind == 0) return velo_group_barrier(me.stream, in);
  std::vector<float> values(kind == 1 ? 1 : 70000);
  const auto count = static_cast<std::int64_t>(values.size());
  const velo_tensor x = view_of(values.data(), f32, count);
  if (kind == 1) return velo_group_receive(me.stream, in, 1, &x);
  return velo_group_all_reduce(me.stream, in, nullptr, &x, &x);
}

// Ranks 0 and 1 wait in "near"; 1, 2 and 3 in "far", to which 2 comes too late. Rank 0 waits first,
// so its deadline is the first; rank 1 waits `later_ms` after it.
velo_status wait_in_chain(const rank_of_group& me, int kind, std::int64_t later_ms) {
  const auto chain = [&](const part_of* near, const part_of* far) {
    if (far == nullptr) return wait_in(me, near->group, kind);
    if (me.rank == 1) sleep_ms(later_ms);
    if (me.rank == 2) sleep_ms(2 * timeout_ms + 500);
    return velo_group_barrier(me.stream, far->group);
  };
  if (me.rank == 0) {
    const part_of near(me.group, {0, 1}, "near");
    return chain(&near, nullptr);
  }
  if (me.rank == 1) {
    const part_of near(me.group, {0, 1}, "near"), far(me.group, {3, 2, 1}, "far");
    return chain(&near, &far);
  }
  const part_of far(me.group, {3, 2, 1}, "far");
  return chain(nullptr, &far);
}

}  // namespace

// VELO_TEST_CALLS: all kinds of waits; else barriers, and on several hosts sums.
TEST_CASE("a rank over MPI that waits in another part is not accused", "[waits]") {
  choose_host();
  const bool is_whole = std::getenv("VELO_TEST_CALLS") != nullptr;
  const joined jobs;
  for (const int kind : {0, 1, 2})
    for (const std::int64_t later_ms : {60, 700}) {
      const bool is_few = kind == 0 || (kind == 2 && std::getenv("VELO_TEST_HOSTS") != nullptr);
      if (!is_whole && (!is_few || later_ms == 60)) continue;
      const velo_status done = wait_in_chain(jobs.me, kind, later_ms);
      const call_record got = last_record();
      INFO("rank " << jobs.me.rank << ", wait " << kind << ", " << later_ms
                   << " ms later: " << got);
      CHECK(done == VELO_ERR_PEER);
      CHECK(got.got == "rank 2 not there");
      CHECK(got.expected == "barrier (operation 1) in far within 1000 ms");
      REQUIRE(velo_group_barrier(jobs.me.stream, jobs.me.group) == VELO_OK);
    }
}

// Rank 2 has waited in "other" for longer than half of its timeout, is stopped there, and then gets
// what it waited for. Its note lapses: rank 0, which waits for 1, which waits for 2, names rank 2.
TEST_CASE("a rank over MPI that is stopped while it waits does not count as waiting", "[waits]") {
  choose_host();
  const joined jobs;
  const rank_of_group& me = jobs.me;
  std::vector<std::int64_t> processes(4);
  std::int64_t own = getpid();
  const std::int64_t one = 1, four = 4;
  const velo_tensor in = view_of(&own, i64, one), out = view_of(processes.data(), i64, four);
  REQUIRE(velo_group_all_gather(me.stream, me.group, &in, &out) == VELO_OK);
  velo_status done = VELO_OK;
  if (me.rank == 0) {
    const part_of near(me.group, {0, 1}, "near"), other(me.group, {0, 2}, "other");
    sleep_ms(800);
    done = velo_group_barrier(me.stream, other.group);
    if (done == VELO_OK) done = velo_group_barrier(me.stream, near.group);
  } else if (me.rank == 1) {
    const part_of near(me.group, {0, 1}, "near"), far(me.group, {1, 2}, "far");
    sleep_ms(850);
    done = velo_group_barrier(me.stream, far.group);
  } else if (me.rank == 2) {
    const part_of far(me.group, {1, 2}, "far"), other(me.group, {0, 2}, "other");
    done = velo_group_barrier(me.stream, other.group);
    if (done == VELO_OK) done = velo_group_barrier(me.stream, far.group);
  } else {
    sleep_ms(700);
    kill(static_cast<pid_t>(processes[2]), SIGSTOP);
    sleep_ms(1800);
    kill(static_cast<pid_t>(processes[2]), SIGCONT);
  }
  const call_record got = last_record();
  INFO("rank " << me.rank << ": " << got);
  if (me.rank < 2) {
    CHECK(done == VELO_ERR_PEER);
    CHECK(got.got == "rank 2 not there");
    CHECK(got.expected == "barrier (operation 1) in far within 1000 ms");
  }
  REQUIRE(velo_group_barrier(me.stream, me.group) == VELO_OK);
}

TEST_CASE("a rank over MPI that has met a fault and made another part passes on none", "[waits]") {
  choose_host();
  const joined jobs;
  const rank_of_group& me = jobs.me;
  if (me.rank < 2) {  // rank 1 ends "first"; both meet that fault
    const part_of first(me.group, {0, 1}, "first");
    if (me.rank == 1) velo_group_abort(first.group);
    CHECK(velo_group_barrier(me.stream, first.group) == VELO_ERR_PEER);
    const part_of second(me.group, {0, 1}, "second");
    CHECK(velo_group_barrier(me.stream, second.group) == VELO_OK);
  }
  velo_status done = VELO_OK;
  call_record got;
  {  // rank 0 does not come, and waits for nobody
    const part_of all(me.group, {3, 2, 1, 0}, "all");
    if (me.rank == 0) sleep_ms(timeout_ms + 400);
    done = velo_group_barrier(me.stream, all.group);
    got = last_record();
  }
  INFO("rank " << me.rank << ": " << got);
  CHECK(done == VELO_ERR_PEER);
  CHECK(got.got == "rank 0 not there");
  REQUIRE(velo_group_barrier(me.stream, me.group) == VELO_OK);
}
