// The variables of each launcher, in one table.
#include "comm/transport/launch.hpp"

#include <cstdint>
#include <cstdlib>

#include "core/failure.hpp"

namespace velo::comm {
namespace {

struct launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* here;
  const char* job[4];  // what tells jobs apart
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
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}}};

const char* text_of(const char* variable) {
  const char* value = variable[0] != 0 ? std::getenv(variable) : nullptr;
  return value != nullptr ? value : "";
}

int number_of(const char* variable, int least, int most) {
  const char* value = text_of(variable);
  char* end = nullptr;
  const long number = std::strtol(value, &end, 10);
  if (end == value || *end != 0 || number < least || number > most)
    core::fail(VELO_ERR_ARGUMENT, variable, core::text("%d to %d", least, most), value);
  return static_cast<int>(number);
}

}  // namespace

launched read_launch() {
  launched found;
  for (const launcher& one : launchers) {
    if (text_of(one.rank)[0] == 0 || text_of(one.size)[0] == 0) continue;
    found.size = number_of(one.size, 1, 1 << 24);
    found.rank = number_of(one.rank, 0, found.size - 1);
    found.here = text_of(one.here)[0] != 0 ? number_of(one.here, 1, found.size) : found.size;
    found.of_mpi = &one == launchers;
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
