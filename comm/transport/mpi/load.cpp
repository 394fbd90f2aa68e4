// The search for the plugin, and the checks of its table.
#include "comm/transport/mpi/load.hpp"

#include <unistd.h>

#include <cstring>
#include <vector>

#include "core/failure.hpp"
#include "core/library.hpp"

namespace velo::comm {
namespace {

constexpr const char* argument = "desc.transport";

std::vector<std::string> places(const std::string& folders) {
  std::vector<std::string> all;
  for (std::size_t from = 0; from < folders.size();) {
    const std::size_t to = std::min(folders.find(':', from), folders.size());
    if (to > from) all.push_back(folders.substr(from, to - from));
    from = to + 1;
  }
  const std::string own = core::file_of(reinterpret_cast<core::any_function>(&load_mpi));
  const std::size_t end = own.rfind('/');
  if (end != std::string::npos) all.push_back(own.substr(0, end));
  return all;
}

}  // namespace

loaded_plugin load_mpi(const std::string& folders) {
  std::string path, looked;
  for (const std::string& folder : places(folders)) {
    const std::string file = folder + "/" + mpi_plugin_file;
    looked += (looked.empty() ? "" : ":") + folder;
    if (access(file.c_str(), F_OK) != 0) continue;
    path = file;
    break;
  }
  if (path.empty())
    core::fail(VELO_ERR_UNSUPPORTED, argument,
               core::text("%s in a folder of plugin_path, or beside libvelo.so", mpi_plugin_file),
               core::text("none in %s", looked.c_str()));
  loaded_plugin found;
  found.file = core::library::open(path.c_str(), argument);
  const auto answer =
      reinterpret_cast<mpi_plugin_fn>(found.file->symbol(mpi_plugin_symbol, argument));
  found.table = answer();
  if (found.table == nullptr || found.table->release == nullptr ||
      std::strcmp(found.table->release, VELO_RELEASE) != 0)
    core::fail(VELO_ERR_ABI, argument, core::text("%s of velo " VELO_RELEASE, mpi_plugin_file),
               found.table == nullptr || found.table->release == nullptr
                   ? "none"
                   : core::text("velo %s", found.table->release).buffer,
               path.c_str());
  return found;
}

}  // namespace velo::comm
