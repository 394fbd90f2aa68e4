// The rank and the group that a description means, and the transport that connects them.
#include "capi/src/group_desc.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "capi/src/boundary.hpp"
#include "comm/transport/host/host.hpp"
#include "comm/transport/launch.hpp"
#include "comm/transport/mpi/load.hpp"
#include "comm/transport/mpi/mpi.hpp"
#include "comm/transport/self/self.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/shm.hpp"
#include "core/text/utf8.hpp"
#include "memory/pool/pool.hpp"
#include "velo/host.h"

namespace velo::capi {
namespace {

using core::fail;
using core::text;

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 80;
constexpr std::uint32_t host_size = 88;
static_assert(sizeof(velo_group_desc) >= desc_size && sizeof(velo_host_collectives) >= host_size);

constexpr std::uint64_t least_buffer = std::uint64_t{8} << 10, most_buffer = std::uint64_t{1} << 32;

void require_name(const char* name) {
  if (name == nullptr) fail(VELO_ERR_NULL, "desc.name", "a name that all ranks know", "NULL");
  const std::string_view all(name);
  const bool fits =
      !all.empty() && all.size() <= 64 && all[0] != '.' &&
      all.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") ==
          std::string_view::npos;
  if (!fits)
    fail(VELO_ERR_ARGUMENT, "desc.name", "1 to 64 letters, digits, '.', '-', '_', not '.' first",
         name);
}

// This process's rank and the number of ranks: from the description, else from the launcher.
comm::launched place_of(const velo_group_desc& desc) {
  comm::launched found;
  if (desc.rank == -1 && desc.size == -1) {
    found = comm::read_launch();
  } else {
    if (desc.size < 1 || desc.size > comm::most_ranks)
      fail(VELO_ERR_ARGUMENT, "desc.size", text("1 to %d", comm::most_ranks),
           text("%d", desc.size));
    if (desc.rank < 0 || desc.rank >= desc.size)
      fail(VELO_ERR_ARGUMENT, "desc.rank", text("0 to %d", desc.size - 1), text("%d", desc.rank));
    found.rank = desc.rank;
    found.size = found.here = desc.size;
  }
  if (desc.name != nullptr) found.name = desc.name;
  return found;
}

std::unique_ptr<comm::transport> over_mpi(const core::context& owner, const velo_group_desc& desc) {
  std::unique_ptr<comm::transport> made =
      comm::make_mpi({owner.configuration().now().plugin_path, desc.communicator, desc.timeout_ns,
                      static_cast<std::size_t>(desc.buffer)});
  if (desc.rank != -1 && desc.rank != made->rank())
    fail(VELO_ERR_ARGUMENT, "desc.rank", text("-1 or %d, as MPI says", made->rank()),
         text("%d", desc.rank));
  if (desc.size != -1 && desc.size != made->size())
    fail(VELO_ERR_ARGUMENT, "desc.size", text("-1 or %d, as MPI says", made->size()),
         text("%d", desc.size));
  return made;
}

// The described pool, whose blocks other processes can map; nullptr: none.
const memory::pool* pool_of(const velo_group_desc& desc) {
  if (desc.pool == nullptr) return nullptr;
  const auto& found = core::use<memory::pool>(desc.pool, "desc.pool");
  if (found.is_closed()) fail(VELO_ERR_HANDLE, "desc.pool", "a pool", "a destroyed pool");
  if (found.range(0).file() < 0)
    fail(VELO_ERR_ARGUMENT, "desc.pool", "a pool of the kind VELO_POOL_SHARED", "another kind");
  return &found;
}

// The group gets its own duplicates of the descriptors.
std::shared_ptr<const comm::registered_files> files_of_pool(const velo_group_desc& desc) {
  const memory::pool* from = pool_of(desc);
  if (from == nullptr) return nullptr;
  auto all = std::make_shared<comm::registered_files>();
  for (const int lifetime : {VELO_LIFETIME_DEFAULT, VELO_LIFETIME_LONG}) {
    const memory::address_range& range = from->range(lifetime);
    comm::descriptor file(fcntl(range.file(), F_DUPFD_CLOEXEC, 0));
    if (!file)
      fail(VELO_ERR_IO, "desc.pool", "a descriptor for each file of the pool", "none",
           std::strerror(errno));
    all->push_back({std::move(file), range.begin(), range.size(), desc.pool});
  }
  return all;
}

// Logs a line about ranks that have not joined yet.
auto reminding(const core::context& owner, const velo_group_desc& desc, const comm::launched& me) {
  return [&owner, label = settings_of(desc).label, size = me.size, name = me.name](
             const comm::rank_set& missing, std::int64_t waited_ns) {
    owner.log().write(VELO_LOG_WARN, "group", "%s: %s of %d not there at '%s' after %lld s",
                      label.c_str(), missing.text().c_str(), size, name.c_str(),
                      static_cast<long long>(waited_ns / 1000000000));
  };
}

std::unique_ptr<comm::transport> over_shm(const core::context& owner, const velo_group_desc& desc,
                                          const comm::launched& me) {
  if (me.here != me.size || me.size > comm::most_ranks)
    fail(VELO_ERR_UNSUPPORTED, "desc.size", text("at most %d ranks, of one host", comm::most_ranks),
         text("%d, of which %d are here", me.size, me.here));
  require_name(me.name.empty() ? nullptr : me.name.c_str());
  return comm::make_shm({me.name,
                         me.rank,
                         me.size,
                         desc.timeout_ns,
                         slot_of(desc, me.size),
                         {},
                         files_of_pool(desc),
                         reminding(owner, desc, me)});
}

std::unique_ptr<comm::transport> over_host(const velo_group_desc& desc, const comm::launched& me) {
  if (me.size > comm::most_ranks)
    fail(VELO_ERR_UNSUPPORTED, "desc.size", text("at most %d ranks", comm::most_ranks),
         text("%d", me.size));
  if (desc.host == nullptr) fail(VELO_ERR_NULL, "desc.host", "functions of the host", "NULL");
  const velo_host_collectives nothing = VELO_HOST_COLLECTIVES_INIT;
  const velo_host_collectives table = read_struct(desc.host, host_size, "desc.host", nothing);
  comm::require_functions(table, "desc.host");
  return comm::make_host({std::make_shared<comm::host_table>(table), me.rank, me.size,
                          desc.timeout_ns, static_cast<std::size_t>(desc.buffer)});
}

}  // namespace

velo_group_desc read_group_desc(const velo_group_desc* given) {
  const velo_group_desc defaults = VELO_GROUP_DESC_INIT;
  if (given == nullptr) return defaults;
  const velo_group_desc desc = read_struct(given, desc_size, "desc", defaults);
  if (desc.transport < VELO_TRANSPORT_AUTO || desc.transport > VELO_TRANSPORT_HOST)
    fail(VELO_ERR_ARGUMENT, "desc.transport", "a VELO_TRANSPORT", text("%d", desc.transport));
  if (desc.timeout_ns < 1)
    fail(VELO_ERR_ARGUMENT, "desc.timeout_ns", "1 or more", core::number(desc.timeout_ns));
  if (desc.buffer < least_buffer || desc.buffer > most_buffer)
    fail(VELO_ERR_ARGUMENT, "desc.buffer", "8192 to 4294967296", core::number(desc.buffer));
  if (desc.label != nullptr) core::require_text(desc.label, "desc.label");
  if (desc.flags > VELO_GROUP_VERIFY)
    fail(VELO_ERR_ARGUMENT, "desc.flags", "bits of VELO_GROUP_VERIFY", text("%u", desc.flags));
  pool_of(desc);
  return desc;
}

comm::group_settings settings_of(const velo_group_desc& desc) {
  return {desc.label != nullptr ? desc.label : comm::group_settings::no_label, desc.timeout_ns,
          (desc.flags & VELO_GROUP_VERIFY) != 0};
}

std::size_t slot_of(const velo_group_desc& desc, int ranks) {
  return comm::shared_area::slot_for(static_cast<std::size_t>(desc.buffer), ranks);
}

std::unique_ptr<comm::transport> transport_of(const core::context& owner,
                                              const velo_group_desc& desc) {
  const bool chosen = desc.transport != VELO_TRANSPORT_AUTO;
  if (desc.transport == VELO_TRANSPORT_MPI || (!chosen && desc.communicator != comm::mpi_world))
    return over_mpi(owner, desc);
  const comm::launched me = place_of(desc);
  if (desc.transport == VELO_TRANSPORT_HOST) return over_host(desc, me);
  if (desc.transport == VELO_TRANSPORT_LOCAL ||
      (desc.transport == VELO_TRANSPORT_SELF && me.size != 1))
    fail(VELO_ERR_UNSUPPORTED, "desc.transport",
         me.size == 1 ? "self, shm, mpi, host or auto" : "shm, mpi, host or auto",
         comm::name_of(desc.transport));
  if (me.size == 1 && desc.transport != VELO_TRANSPORT_SHM)
    return std::make_unique<comm::self_transport>();
  if (!chosen && me.of_mpi && me.here != me.size) return over_mpi(owner, desc);
  return over_shm(owner, desc, me);
}

}  // namespace velo::capi
