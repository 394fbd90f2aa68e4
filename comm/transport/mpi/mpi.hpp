// The transport of ranks that are MPI processes, on one host or on several.
#pragma once

#include <memory>
#include <string>

#include "comm/transport/transport.hpp"

namespace velo::comm {

struct mpi_job {
  std::string folders;        // where to search for the plugin: the key plugin_path
  std::int64_t communicator;  // mpi_world, or an MPI_Fint
  std::int64_t timeout_ns;
  std::size_t buffer;  // bytes of staging
};

// Connects to the other ranks of the communicator. Throws as mpi_progress::open does, and MEMORY.
std::unique_ptr<transport> make_mpi(const mpi_job& job);

}  // namespace velo::comm
