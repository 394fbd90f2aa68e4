// The variables of launchers: which are read, in which order, and what is refused.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "comm/transport/launch.hpp"
#include "tests/core/fails.hpp"

using namespace velo;
using velo::testing::call_record;
using velo::testing::thrown_by;

namespace {

using variables_of = std::map<std::string, std::string>;

const char* const variables[] = {"OMPI_COMM_WORLD_RANK",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "RANK",
                                 "WORLD_SIZE",
                                 "LOCAL_WORLD_SIZE",
                                 "SLURM_PROCID",
                                 "SLURM_NTASKS",
                                 "SLURM_STEP_NUM_TASKS",
                                 "SLURM_STEP_NUM_NODES",
                                 "SLURM_NNODES",
                                 "SLURM_NODEID",
                                 "SLURM_STEP_TASKS_PER_NODE",
                                 "SLURM_TASKS_PER_NODE",
                                 "SLURM_JOB_ID",
                                 "SLURM_STEP_ID",
                                 "PMIX_RANK",
                                 "PMI_RANK"};

// These and no others of a launcher, as long as it lives.
class environment {
 public:
  explicit environment(const variables_of& given) {
    for (const char* name : variables) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      unsetenv(name);
    }
    for (const auto& [name, value] : given) setenv(name.c_str(), value.c_str(), 1);
  }
  ~environment() {
    for (const char* name : variables) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  variables_of before_;
};

comm::launched read(const variables_of& given) {
  const environment only(given);
  return comm::read_launch();
}

call_record refusal(const variables_of& given) {
  return thrown_by([&] { read(given); });
}

}  // namespace

TEST_CASE("a process that nobody launched is one rank alone") {
  for (const variables_of& given : std::vector<variables_of>{
           {},
           {{"RANK", ""}, {"WORLD_SIZE", ""}},
           {{"SLURM_PROCID", "0"}},                            // a batch script
           {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},     // of one task
           {{"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "2"}}}) {  // a shell of salloc
    const comm::launched alone = read(given);
    CHECK(alone.rank == 0);
    CHECK(alone.size == 1);
    CHECK(alone.name.empty());
  }
}

TEST_CASE("mpirun and torchrun inside a job of Slurm come before it") {
  variables_of all = {
      {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}};
  CHECK(read(all).rank == 3);
  CHECK(read(all).size == 4);
  all.insert({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "6"}});
  CHECK(read(all).rank == 5);
  CHECK(read(all).size == 6);
}

TEST_CASE("srun's variables say rank, size and how many ranks are on this host") {
  variables_of step = {{"SLURM_PROCID", "1"},         {"SLURM_NTASKS", "2"},
                       {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"},
                       {"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "0"}};
  const comm::launched one = read(step);
  CHECK(one.rank == 1);
  CHECK(one.size == 2);
  CHECK(one.here == 2);
  CHECK_FALSE(one.of_mpi);
  step["SLURM_STEP_ID"] = "1";
  CHECK(read(step).name != one.name);  // each step of a job
  step["PMIX_RANK"] = "1";
  CHECK(read(step).of_mpi);

  step = {{"SLURM_PROCID", "6"},          {"SLURM_STEP_NUM_TASKS", "9"},
          {"SLURM_STEP_NUM_NODES", "4"},  {"SLURM_STEP_TASKS_PER_NODE", "3,2(x2),2"},
          {"SLURM_TASKS_PER_NODE", "99"}, {"SLURM_NODEID", "0"}};
  const int here[] = {3, 2, 2, 2};
  for (int node = 0; node < 4; ++node) {
    step["SLURM_NODEID"] = std::to_string(node);
    CHECK(read(step).here == here[node]);
  }
  for (const char* list :
       {"", "3,", "3(x", "3(x2", "3(x2)2", "0(x4)", "3(x0),2", "x", "10", "3 2"}) {
    INFO(list);
    step["SLURM_STEP_TASKS_PER_NODE"] = list;
    step["SLURM_TASKS_PER_NODE"] = list;
    const call_record why = refusal(step);
    CHECK(why.code == VELO_ERR_ARGUMENT);
    CHECK(why.argument.find("TASKS_PER_NODE") != std::string::npos);
  }
}

TEST_CASE("half of what a launcher says is refused, and so is a batch script of several tasks") {
  const auto refused = [](const variables_of& given, const char* argument, const char* got) {
    const call_record why = refusal(given);
    CHECK_REFUSED(why, VELO_ERR_ARGUMENT, argument);
    CHECK(why.got.find(got) == 0);
  };
  refused({{"WORLD_SIZE", "2"}}, "RANK", "none");
  refused({{"RANK", "0"}}, "WORLD_SIZE", "none");
  refused({{"RANK", "0"}, {"WORLD_SIZE", ""}}, "WORLD_SIZE", "none");
  refused({{"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_RANK", "none");
  refused({{"OMPI_COMM_WORLD_RANK", "2"}}, "OMPI_COMM_WORLD_SIZE", "none");
  refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK", "2");
  refused({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, "SLURM_STEP_NUM_TASKS",
          "none, with SLURM_NTASKS = 2");
  refused({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}}, "SLURM_PROCID", "2");
  refused({{"SLURM_PROCID", "x"}, {"SLURM_STEP_NUM_TASKS", "2"}}, "SLURM_PROCID", "x");
}
