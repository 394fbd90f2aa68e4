// Finding the MPI plugin and checking that it belongs to this release.
#pragma once

#include <memory>
#include <string>

#include "comm/transport/mpi/plugin.hpp"

namespace velo::core {
class library;
}

namespace velo::comm {

struct loaded_plugin {
  std::shared_ptr<const core::library> file;
  const mpi_plugin* table = nullptr;
};

// folders: separated by ':', searched before the folder of libvelo.so. Throws UNSUPPORTED (not
// found), IO (the loader cannot open it), NOT_FOUND (not a velo plugin), ABI (of another release).
loaded_plugin load_mpi(const std::string& folders);

}  // namespace velo::comm
