// A plugin for MPI as another release of velo would bring it.
#include "comm/transport/mpi/plugin.hpp"

extern "C" __attribute__((visibility("default"))) const velo::comm::mpi_plugin* velo_mpi_plugin() {
  static velo::comm::mpi_plugin table;
  table.release = "0.9.7";
  return &table;
}
