// The environment variables of each launcher, in one table.
#include "comm/transport/launch.hpp"

#include <cstdint>
#include <cstdlib>

#include "core/failure.hpp"

namespace velo::comm {
namespace {

constexpr int most = 1 << 24;  // of ranks, and of nodes

struct launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* here;
  const char* job[4];  // variables that identify the job
};

constexpr launcher launchers[] = {
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMIX_SERVER_URI2", "OMPI_MCA_orte_hnp_uri"}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    // A batch script has SLURM_NTASKS, too; only srun sets the number of tasks of a step.
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME", "SLURM_RESTART_COUNT"}}};
constexpr const launcher &mpirun = launchers[0], &srun = launchers[2];

const char* text_of(const char* variable) {
  const char* value = variable[0] != 0 ? std::getenv(variable) : nullptr;
  return value != nullptr ? value : "";
}

bool is_set(const char* variable) {
  return text_of(variable)[0] != 0;
}

int number_of(const char* variable, int least, int greatest) {
  const char* value = text_of(variable);
  char* end = nullptr;
  const long number = std::strtol(value, &end, 10);
  if (end == value || *end != 0 || number < least || number > greatest)
    core::fail(VELO_ERR_ARGUMENT, variable, core::text("%d to %d", least, greatest), value);
  return static_cast<int>(number);
}

// Whether a launcher has set its variables. It sets all the required ones, or none.
bool has_started(const launcher& one) {
  const bool rank = is_set(one.rank), size = is_set(one.size);
  if (&one == &srun) {
    if (rank && !size && is_set("SLURM_NTASKS") && number_of("SLURM_NTASKS", 1, most) > 1)
      core::fail(VELO_ERR_ARGUMENT, one.size,
                 "ranks that srun started, or rank and size in the description",
                 core::text("none, with SLURM_NTASKS = %s: Slurm runs a batch script once",
                            text_of("SLURM_NTASKS")));
    return rank && size;
  }
  if (rank != size)
    core::fail(VELO_ERR_ARGUMENT, rank ? one.size : one.rank,
               core::text("a value beside %s = %s", rank ? one.rank : one.size,
                          text_of(rank ? one.rank : one.size)),
               "none");
  return rank;
}

// The tasks of one node, from Slurm's list, as in "2(x3),1". Returns 0 if the list lacks the node
// or is malformed.
int tasks_of(const char* list, int node) {
  while (*list != 0) {
    char* end = nullptr;
    const long tasks = std::strtol(list, &end, 10);
    long nodes = 1;
    if (end != list && end[0] == '(' && end[1] == 'x') {
      const char* times = end + 2;
      nodes = std::strtol(times, &end, 10);
      if (end == times || *end != ')') return 0;
      ++end;
    }
    if (end == list || tasks < 1 || tasks > most || nodes < 1 || (*end != 0 && *end != ','))
      return 0;
    if (node < nodes) return static_cast<int>(tasks);
    node -= static_cast<int>(nodes);
    list = *end == ',' ? end + 1 : end;
  }
  return 0;
}

int ranks_here(const launcher& one, int size) {
  if (&one != &srun) return is_set(one.here) ? number_of(one.here, 1, size) : size;
  const char* nodes = is_set("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  if (!is_set(nodes) || number_of(nodes, 1, most) == 1) return size;
  const char* list =
      is_set("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const int here = tasks_of(text_of(list), number_of("SLURM_NODEID", 0, most));
  if (here < 1 || here > size)
    core::fail(VELO_ERR_ARGUMENT, list, "the tasks of each node, as in 2(x3),1", text_of(list));
  return here;
}

// Whether the launcher starts MPI processes. srun does if it was given a process management
// interface.
bool is_of_mpi(const launcher& one) {
  return &one == &mpirun || (&one == &srun && (is_set("PMIX_RANK") || is_set("PMI_RANK")));
}

}  // namespace

launched read_launch() {
  launched found;
  for (const launcher& one : launchers) {
    if (!has_started(one)) continue;
    found.size = number_of(one.size, 1, most);
    found.rank = number_of(one.rank, 0, found.size - 1);
    found.here = ranks_here(one, found.size);
    found.of_mpi = is_of_mpi(one);
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char* variable : one.job)
      for (const char* at = text_of(variable);; ++at) {
        hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
        if (*at == 0) break;
      }
    found.name = core::text("%s-%016llx", one.name, static_cast<unsigned long long>(hash)).buffer;
    return found;
  }
  return found;
}

}  // namespace velo::comm
