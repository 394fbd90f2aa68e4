// How a launcher tells a process which rank it is: mpirun's and torchrun's environment variables.
#pragma once

#include <string>

namespace velo::comm {

struct launched {
  int rank = 0, size = 1;
  int here = 1;  // ranks on this host
  bool of_mpi = false;
  std::string name;  // the same for all ranks of the job, and for no other job
};

// Of OpenMPI's mpirun or of torchrun; one rank alone when none launched this process.
// Throws VELO_ERR_ARGUMENT when the variables make no sense.
launched read_launch();

}  // namespace velo::comm
