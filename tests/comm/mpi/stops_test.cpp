// A rank over MPI that is stopped, or killed, in the middle of whatever ranks do together.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "comm/collective/every_call.hpp"
#include "comm/lateness.hpp"
#include "comm/mpi/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

using clock_type = std::chrono::steady_clock;

std::vector<named_call> all_calls() {
  std::vector<named_call> all = every_call();
  all.push_back(send_and_receive());
  return all;
}

// VELO_TEST_CALLS: the one of that name, or "all".
std::vector<named_call> calls_to_try() {
  const char* setting = std::getenv("VELO_TEST_CALLS");
  const std::string which = setting != nullptr ? setting : "all_reduce";
  std::vector<named_call> some;
  for (const named_call& one : all_calls())
    if (which == "all" || which == one.name) some.push_back(one);
  REQUIRE(!some.empty());
  return some;
}

// VELO_TEST_HOSTS: the first two ranks share a host, or pretend to, and the third has another.
void choose_host() {
  if (std::getenv("VELO_TEST_HOSTS") == nullptr) return;
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  setenv("VELO_MPI_HOST", rank < 2 ? "one" : "two", 1);
}

std::vector<std::int64_t> processes_of(const rank_of_group& me) {
  const std::int64_t one = 1, all = me.size;
  std::int64_t own = getpid();
  std::vector<std::int64_t> each(at(all));
  const velo_tensor in = view_of(&own, i64, one), out = view_of(each.data(), i64, all);
  REQUIRE(velo_group_all_gather(me.stream, me.group, &in, &out) == VELO_OK);
  return each;
}

velo_status repeat(const named_call& is, const rank_of_group& me, bool plans) {
  call_tensors v(70000, 3);
  velo_status done = VELO_OK;
  while (done == VELO_OK) done = is.call({me.stream, me.group, me.rank, plans}, v);
  return done;
}

}  // namespace

TEST_CASE("a rank stopped inside any collective over MPI is named at the deadline", "[stopped]") {
  choose_host();
  const joined jobs;
  const std::vector<std::int64_t> processes = processes_of(jobs.me);
  const std::vector<named_call> calls = calls_to_try();
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (const bool plans : {false, true}) {
      if (plans && calls.size() == 1) break;
      const int victim = static_cast<int>((i + plans) % 3);
      INFO(calls[i].name << (plans ? ", planned" : "") << ": rank " << victim);
      const joined all(over_mpi(400));
      const lateness late_by;
      std::atomic<bool> over{false};
      clock_type::time_point stopped;
      std::thread other;
      if (all.me.rank == (victim + 1) % 3)
        other = std::thread([&] {
          const auto process = static_cast<pid_t>(processes[at(victim)]);
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          stopped = clock_type::now();
          kill(process, SIGSTOP);
          while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the third rank knows, too
          kill(process, SIGCONT);
        });
      const velo_status done = repeat(calls[i], all.me, plans);
      const std::string got = last_record().got;
      const auto now = clock_type::now();
      over = true;
      if (other.joinable()) {
        other.join();
        const std::chrono::duration<double, std::milli> took = now - stopped;
        CHECK(took.count() < 400 + 20 + late_by.of_ms(2));
      }
      CHECK(done == VELO_ERR_PEER);
      CHECK(got == "rank " + std::to_string(victim) + " not there");
      REQUIRE(velo_group_barrier(jobs.me.stream, jobs.me.group) == VELO_OK);
    }
}

// A survivor's word is what the test looks for: mpirun reports the dead one as an error.
TEST_CASE("a rank killed inside any collective over MPI is named by the others", "[killed]") {
  choose_host();
  const joined all;
  const std::vector<named_call> calls = calls_to_try();
  REQUIRE(calls.size() == 1);
  CHECK(sum_of(all.me, 100) == VELO_OK);
  std::thread other;
  if (all.me.rank == 1)
    other = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      raise(SIGKILL);
    });
  const velo_status done = repeat(calls[0], all.me, false);
  CHECK(done == VELO_ERR_PEER);
  CHECK(last_record().got == "rank 1 whose process ended");
  if (done == VELO_ERR_PEER && last_record().got == "rank 1 whose process ended" &&
      all.me.rank == 0)
    std::fprintf(stderr, "the survivors know\n");
  if (other.joinable()) other.join();
}
