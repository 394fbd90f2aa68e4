// How a launcher tells a process which rank it is: the environment variables of mpirun, torchrun
// and Slurm's srun.
#pragma once

#include <string>

namespace velo::comm {

struct launched {
  int rank = 0, size = 1;
  int here = 1;  // ranks on this host
  bool of_mpi = false;
  std::string name;  // the same for all ranks of the job, and for no other job
};

// Of the first launcher that left its variables, in this order, since torchrun and mpirun run
// inside a job of Slurm, too; one rank alone when none launched this process. Throws
// VELO_ERR_ARGUMENT when the variables make no sense: a rank without a size, a size without a rank,
// a batch script of several tasks, which Slurm runs once.
launched read_launch();

}  // namespace velo::comm
