// The rank of a process, read from the environment variables of its launcher: mpirun, torchrun or
// Slurm's srun.
#pragma once

#include <string>

namespace velo::comm {

struct launched {
  int rank = 0, size = 1;
  int here = 1;  // ranks on this host
  bool of_mpi = false;
  std::string name;  // equal on all ranks of the job, and different in every other job
};

// Reads the variables of the first launcher that has set its own. torchrun and mpirun come before
// Slurm, since they also run inside a job of Slurm. Without a launcher the process is the only
// rank. Throws VELO_ERR_ARGUMENT for inconsistent variables: a rank without a size, a size without
// a rank, or a batch script of several tasks, which Slurm runs once.
launched read_launch();

}  // namespace velo::comm
