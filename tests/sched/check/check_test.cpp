// Every kind of violation, each by a schedule that has it and otherwise nothing wrong.
#include "sched/check/check.hpp"

#include "sched/schedule/csv.hpp"
#include "tests/core/fails.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

struct fault {
  velo_violation_code code;
  std::int32_t rank;
  std::int64_t index;
};
bool operator==(const fault& a, const fault& b) {
  return a.code == b.code && a.rank == b.rank && a.index == b.index;
}
std::ostream& operator<<(std::ostream& to, const fault& f) {
  return to << f.code << " at rank " << f.rank << ", action " << f.index;
}

std::vector<fault> faults_of(const char* rows) {
  std::vector<fault> found;
  for (const sched::violation& v : sched::check(sched::read_csv(rows)))
    found.push_back({v.code, v.rank, v.index});
  return found;
}
using faults = std::vector<fault>;

}  // namespace

TEST_CASE("a schedule without a fault has no violation") {
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").empty());
  CHECK(faults_of("0F0,0F1,0I0,0I1,0W1,0W0\n1F0,1I0,1F1,1W0,1B1\n").empty());
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n").empty());
  CHECK(faults_of("").empty());
}

TEST_CASE("what is missing is named") {
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n") == faults{{VELO_VIOLATION_MISSING, 1, -1}});
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1I1\n") == faults{{VELO_VIOLATION_MISSING, 1, -1}});
  const auto found = sched::check(sched::read_csv("0F0,0B0\n1F0,1I0\n"));
  REQUIRE(found.size() == 1);
  CHECK(sched::text_of(found[0].subject) == "1W0");
  CHECK(found[0].reason == "1W0 is missing");
}

TEST_CASE("what is there twice is named") {
  CHECK(faults_of("0F0,0F1,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n") ==
        faults{{VELO_VIOLATION_DUPLICATE, 0, 2}});
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,1B0,1W0,1F1,1B1\n") ==
        faults{{VELO_VIOLATION_DUPLICATE, 1, 2}});
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,1I0,1B0,1F1,1B1\n") ==
        faults{{VELO_VIOLATION_DUPLICATE, 1, 2}});
}

TEST_CASE("an action before its own rank's action that it needs is named") {
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n") == faults{{VELO_VIOLATION_ORDER, 1, 0}});
  CHECK(faults_of("0F0,0F1,0W0,0I0,0B1\n1F0,1B0,1F1,1B1\n") ==
        faults{{VELO_VIOLATION_ORDER, 0, 2}});
  CHECK(faults_of("0F0,0F1,0B0,0B1\n1F0,1B0,(1F1;1B1)OVERLAP_F_B\n").size() == 1);
}

TEST_CASE("a stage on two ranks or on none is named") {
  CHECK(faults_of("0F0,0B0\n1F0,0B1\n").front() == fault{VELO_VIOLATION_PLACEMENT, 1, 1});
  const auto found = sched::check(sched::read_csv("0F0,0B0\n2F0,2B0\n"));
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == VELO_VIOLATION_PLACEMENT);
  CHECK(found[0].reason == "stage 1 is on no rank");
}

TEST_CASE("activations are made again once, between their forward and backward") {
  CHECK(faults_of("0F0,0F1,0RECOMPUTE0,0B0,0RECOMPUTE1,0I1,0W1\n").empty());
  CHECK(faults_of("0RECOMPUTE0,0F0,0B0\n") == faults{{VELO_VIOLATION_ORDER, 0, 0}});
  CHECK(faults_of("0F0,0I0,0RECOMPUTE0,0W0\n") == faults{{VELO_VIOLATION_ORDER, 0, 2}});
  CHECK(faults_of("0F0,0RECOMPUTE0,0RECOMPUTE0,0B0\n") == faults{{VELO_VIOLATION_DUPLICATE, 0, 2}});
  CHECK(faults_of("0F0,0B0\n1F0,0RECOMPUTE0,1B0\n") == faults{{VELO_VIOLATION_PLACEMENT, 1, 1}});
}

TEST_CASE("what is on the host is brought back before it is needed") {
  CHECK(faults_of("0F0,0OFFLOAD0,0RELOAD0,0I0,0OFFLOAD0,0RELOAD0,0W0\n").empty());
  CHECK(faults_of("0F0,0OFFLOAD0,0B0\n") == faults{{VELO_VIOLATION_OFFLOAD, 0, 2}});
  CHECK(faults_of("0F0,0I0,0OFFLOAD0,0W0\n") == faults{{VELO_VIOLATION_OFFLOAD, 0, 3}});
  CHECK(faults_of("0F0,0RELOAD0,0B0\n") == faults{{VELO_VIOLATION_OFFLOAD, 0, 1}});
  CHECK(faults_of("0F0,0OFFLOAD0,0OFFLOAD0,0RELOAD0,0B0\n") ==
        faults{{VELO_VIOLATION_OFFLOAD, 0, 2}});
  CHECK(faults_of("0OFFLOAD0,0RELOAD0,0F0,0B0\n").front() == fault{VELO_VIOLATION_ORDER, 0, 0});
  CHECK(faults_of("0F0,0B0,0OFFLOAD0\n") == faults{{VELO_VIOLATION_ORDER, 0, 2}});
}

TEST_CASE("parameters are updated once, behind all that their gradients come from") {
  CHECK(faults_of("0F0,0B0,0REDUCE_GRAD,0OPTIMIZER\n1F0,1I0,1W0,1OPTIMIZER\n").empty());
  CHECK(faults_of("0F0,0I0,0OPTIMIZER,0W0\n") == faults{{VELO_VIOLATION_OPTIMIZER, 0, 2}});
  CHECK(faults_of("0F0,0B0,0OPTIMIZER,0REDUCE_GRAD\n") == faults{{VELO_VIOLATION_OPTIMIZER, 0, 3}});
  CHECK(faults_of("0F0,0B0,0OPTIMIZER,0OPTIMIZER\n") == faults{{VELO_VIOLATION_DUPLICATE, 0, 3}});
  CHECK(faults_of("0F0,0B0\n1F0,1B0,0OPTIMIZER,1OPTIMIZER\n") ==
        faults{{VELO_VIOLATION_PLACEMENT, 1, 2}});
}

TEST_CASE("parameters that were let go are gathered before they are used") {
  CHECK(faults_of("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD\n").empty());
  CHECK(faults_of("0UNSHARD,0F0,0RESHARD,0B0\n") == faults{{VELO_VIOLATION_UNSHARD, 0, 3}});
  CHECK(faults_of("0F0,0UNSHARD,0B0\n") == faults{{VELO_VIOLATION_UNSHARD, 0, 1}});
}

TEST_CASE("splits out of the order of their sequence are named") {
  sched::shape sizes;
  sizes.ranks = sizes.stages = 1;
  sizes.microbatches = sizes.splits = 2;
  const auto found_in = [&](const char* rows) {
    std::vector<sched::action> row(8);
    sched::schedule read = sched::read_csv(rows);
    read.read(0, 0, 8, row.data());
    std::vector<fault> found;
    for (const sched::violation& v : sched::check({sizes, {{0}}, {row}}))
      found.push_back({v.code, v.rank, v.index});
    return found;
  };
  CHECK(found_in("0F0,0F1,0B1,0B0,0F2,0F3,0B3,0B2\n").empty());
  CHECK(found_in("0F1,0F0,0B1,0B0,0F2,0F3,0B3,0B2\n") == faults{{VELO_VIOLATION_ORDER, 0, 0}});
  CHECK(found_in("0F0,0F1,0B1,0B0,0F2,0F3,0B2,0B3\n") == faults{{VELO_VIOLATION_ORDER, 0, 6}});
}

TEST_CASE("ranks that wait for each other are all named, with where they stand") {
  CHECK(faults_of("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n") ==
        faults{{VELO_VIOLATION_STUCK, 0, 1}, {VELO_VIOLATION_STUCK, 1, 0}});
  // Four stages on two ranks: the second half of one forward before the first of another.
  CHECK(faults_of("0F0,2F1,0F1,2F0,2B0,2B1,0B0,0B1\n1F0,3F0,1F1,3F1,3B0,3B1,1B0,1B1\n") ==
        faults{{VELO_VIOLATION_STUCK, 0, 1}, {VELO_VIOLATION_STUCK, 1, 1}});
}

TEST_CASE("no more violations are kept than anyone reads") {
  std::string row;
  for (int i = 0; i < 3000; ++i) row += "0B" + std::to_string(i) + ",";
  CHECK(sched::check(sched::read_csv(row + "0F0\n")).size() == sched::most_violations);
}

TEST_CASE("what the simulator cannot finish it refuses, naming who waits") {
  const auto found =
      failure_of([] { timed(sched::read_csv("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")); });
  CHECK(found.code == VELO_ERR_STATE);
  CHECK(found.got == "2 that do: rank 0 at 0B0, its action 1");
  CHECK(failure_of([] { timed(sched::read_csv("2F0,2B0\n")); }).code == VELO_ERR_STATE);
}
