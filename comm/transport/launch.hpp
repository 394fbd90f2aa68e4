// The rank of a process, read from the environment variables of its launcher: mpirun, torchrun or
// Slurm's srun.
#pragma once

#include <string>

namespace velo::comm {

struct launched {
  int rank = 0, size = 1;
  int here = 1;  // ranks on this host
  bool of_mpi = false;
  std::string name;  // the same for all ranks of the job, and for no other job
};

// Reads the variables of the first launcher that has set its own, in this order, since torchrun and
// mpirun also run inside a job of Slurm. Without a launcher the process is the only rank. Throws
// VELO_ERR_ARGUMENT when the variables make no sense: a rank without a size, a size without a rank,
// a batch script of several tasks, which Slurm runs once.
launched read_launch();

}  // namespace velo::comm
