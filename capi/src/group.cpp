// Entries of velo/group.h.
#include "velo/group.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/group_desc.hpp"
#include "capi/src/group_of.hpp"
#include "capi/src/reduction.hpp"
#include "comm/collective/calls.hpp"
#include "comm/transport/local/local.hpp"
#include "comm/transport/mpi/load.hpp"
#include "comm/transport/self/self.hpp"
#include "comm/transport/shm/shm.hpp"
#include "core/handle/guard.hpp"
#include "velo/host.h"  // so that debuggers show the type of velo_group_desc::host

using namespace velo;
using capi::group_of;
using capi::read_reduction;
using core::fail;
using core::text;

namespace {

// The struct of ABI 1.0; later ones are longer.
constexpr std::uint32_t info_size = 48;
static_assert(sizeof(velo_group_info) >= info_size);

// call(caller): returns the operation.
template <class Call>
velo_status submit(const char* function, velo_stream stream, velo_group group, Call&& call) {
  return core::guard(function, [&](const core::inside_scope& here) {
    comm::group& of = group_of(here, group);
    core::stream& on = capi::stream_of(here, stream, of.owner());
    of.submit(here, on, call(comm::caller{of.owner(), of.rank(), of.size()}));
  });
}

// The description of a subgroup; defaults come from its parent.
velo_group_desc read_part_desc(const velo_group_desc* given, const comm::group& parent) {
  velo_group_desc desc = capi::read_group_desc(given);
  if (given == nullptr) desc.timeout_ns = parent.timeout_ns();
  const char* set = desc.transport != VELO_TRANSPORT_AUTO ? "desc.transport"
                    : desc.name != nullptr                ? "desc.name"
                    : desc.rank != -1                     ? "desc.rank"
                    : desc.size != -1                     ? "desc.size"
                    : desc.host != nullptr                ? "desc.host"
                    : desc.pool != nullptr                ? "desc.pool"
                                                          : nullptr;
  if (set != nullptr)
    fail(VELO_ERR_ARGUMENT, set, "as VELO_GROUP_DESC_INIT has it", "another value");
  return desc;
}

// The listed ranks, and the caller's position in the list.
comm::subgroup_terms part_of(const comm::group& parent, const std::int32_t* ranks,
                             std::int32_t count) {
  comm::subgroup_terms of;
  of.rank = -1;
  comm::rank_set named;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t rank = ranks[i];
    if (rank < 0 || rank >= parent.size())
      fail(VELO_ERR_ARGUMENT, text("ranks[%d]", i), text("0 to %d", parent.size() - 1),
           text("%d", rank));
    if (named.has(rank))
      fail(VELO_ERR_ARGUMENT, text("ranks[%d]", i), "each rank once", text("rank %d again", rank));
    named.add(rank);
    if (rank == parent.rank()) of.rank = i;
    of.ranks.push_back(rank);
  }
  if (of.rank < 0)
    fail(VELO_ERR_ARGUMENT, "ranks", text("rank %d, which calls, among them", parent.rank()),
         "only others");
  return of;
}

velo_group made_of(comm::group& parent, const velo_group_desc& desc,
                   std::unique_ptr<comm::transport> link, const comm::group_ties& of_part = {}) {
  return core::handle_of(core::make_object<comm::group>(
      &parent.owner(), parent.owner(), std::move(link), capi::settings_of(desc), of_part));
}

std::vector<core::context*> owners_of(const velo_context* contexts, std::int32_t count) {
  std::vector<core::context*> owners;
  for (std::int32_t i = 0; i < count; ++i) {
    core::context& one = core::use<core::context>(contexts[i], text("contexts[%d]", i));
    for (std::size_t k = 0; k < owners.size(); ++k)
      if (owners[k] == &one)
        fail(VELO_ERR_ARGUMENT, text("contexts[%d]", i), "a context for each rank",
             text("contexts[%zu] again", k));
    owners.push_back(&one);
  }
  return owners;
}

}  // namespace

extern "C" {

velo_status velo_group_create(velo_context context, const velo_group_desc* desc,
                              velo_group* group) {
  return core::guard("velo_group_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    const velo_group_desc given = capi::read_group_desc(desc);
    capi::required(group, "group");
    *group = core::handle_of(core::make_object<comm::group>(
        &owner, owner, capi::transport_of(owner, given), capi::settings_of(given)));
  });
}

velo_status velo_transport_query(velo_context context, velo_transport transport) {
  return core::guard("velo_transport_query", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    if (transport < VELO_TRANSPORT_AUTO || transport > VELO_TRANSPORT_HOST)
      fail(VELO_ERR_ARGUMENT, "transport", "a VELO_TRANSPORT", text("%d", transport));
    if (transport == VELO_TRANSPORT_SHM) comm::require_shm();
    if (transport == VELO_TRANSPORT_MPI) comm::load_mpi(owner.configuration().now().plugin_path);
  });
}

velo_status velo_group_create_local(const velo_context* contexts, int32_t count,
                                    const velo_group_desc* desc, velo_group* groups) {
  return core::guard("velo_group_create_local", [&] {
    capi::required(contexts, "contexts");
    if (count < 1 || count > comm::most_ranks)
      fail(VELO_ERR_ARGUMENT, "count", text("1 to %d", comm::most_ranks), text("%d", count));
    const std::vector<core::context*> owners = owners_of(contexts, count);
    const velo_group_desc given = capi::read_group_desc(desc);
    if (given.transport != VELO_TRANSPORT_AUTO && given.transport != VELO_TRANSPORT_LOCAL)
      fail(VELO_ERR_UNSUPPORTED, "desc.transport", "local or auto", comm::name_of(given.transport));
    capi::required(groups, "groups");
    auto links = comm::make_local(count, capi::slot_of(given, count), given.timeout_ns);
    std::vector<velo_group> made;
    made.reserve(owners.size());
    try {
      for (std::size_t rank = 0; rank < owners.size(); ++rank)
        made.push_back(core::handle_of(core::make_object<comm::group>(
            owners[rank], *owners[rank], std::move(links[rank]), capi::settings_of(given))));
    } catch (...) {
      for (const velo_group one : made) core::destroy_handle<comm::group>(one, "groups");
      throw;
    }
    std::copy(made.begin(), made.end(), groups);
  });
}

velo_status velo_group_create_part(velo_group parent, const int32_t* ranks, int32_t count,
                                   const velo_group_desc* desc, velo_group* group) {
  return core::guard("velo_group_create_part", [&] {
    comm::group& from = core::use<comm::group>(parent, "parent");
    capi::required(ranks, "ranks");
    if (count < 1 || count > from.size())
      fail(VELO_ERR_ARGUMENT, "count", text("1 to %d", from.size()), text("%d", count));
    comm::subgroup_terms of = part_of(from, ranks, count);
    const velo_group_desc given = read_part_desc(desc, from);
    capi::required(group, "group");
    of.slot_bytes = capi::slot_of(given, count);
    of.timeout_ns = given.timeout_ns;
    *group = made_of(from, given, from.part(of), from.ties_of_part(of.ranks));
  });
}

velo_status velo_group_shrink(velo_group group, const velo_group_desc* desc,
                              velo_group* survivors) {
  return core::guard("velo_group_shrink", [&] {
    comm::group& from = group_of(group);
    const velo_group_desc given = read_part_desc(desc, from);
    capi::required(survivors, "survivors");
    comm::subgroup_terms of;
    of.slot_bytes = capi::slot_of(given, from.size());
    of.timeout_ns = given.timeout_ns;
    *survivors = made_of(from, given, from.shrink(of));
  });
}

void velo_group_destroy(velo_group group) {
  capi::destroy<comm::group>("velo_group_destroy", group, "group", [](comm::group& given) {
    if (given.is_waited_for_here())
      fail(VELO_ERR_STATE, "group", "a call from outside of its streams",
           "one from the work of a stream with collectives of the group");
    given.owner().require_can_wait("group");
  });
}

velo_status velo_group_abort(velo_group group) {
  return core::guard("velo_group_abort", [&] { group_of(group).abort(); });
}

velo_status velo_group_get_info(velo_group group, velo_group_info* info) {
  return core::guard("velo_group_get_info", [&] {
    velo_group_info now{};
    group_of(group).fill(now);
    capi::write_struct(info, info_size, "info", now);
  });
}

velo_status velo_group_describe(velo_group group, char* buffer, uint64_t capacity,
                                uint64_t* needed) {
  return core::guard("velo_group_describe", [&] {
    capi::write_text(group_of(group).describe().c_str(), buffer, capacity, needed);
  });
}

velo_status velo_group_history(velo_group group, char* buffer, uint64_t capacity,
                               uint64_t* needed) {
  return core::guard("velo_group_history", [&] {
    capi::write_text(group_of(group).history().c_str(), buffer, capacity, needed);
  });
}

velo_status velo_group_barrier(velo_stream stream, velo_group group) {
  return submit("velo_group_barrier", stream, group,
                [&](const comm::caller&) { return comm::barrier_call(); });
}

velo_status velo_group_all_reduce(velo_stream stream, velo_group group,
                                  const velo_reduction* reduction, const velo_tensor* in,
                                  const velo_tensor* out) {
  return submit("velo_group_all_reduce", stream, group, [&](const comm::caller& by) {
    return comm::all_reduce_call(by, read_reduction(reduction), in, out);
  });
}

velo_status velo_group_reduce(velo_stream stream, velo_group group, int32_t root,
                              const velo_reduction* reduction, const velo_tensor* in,
                              const velo_tensor* out) {
  return submit("velo_group_reduce", stream, group, [&](const comm::caller& by) {
    return comm::reduce_call(by, root, read_reduction(reduction), in, out);
  });
}

velo_status velo_group_broadcast(velo_stream stream, velo_group group, int32_t root,
                                 const velo_tensor* x) {
  return submit("velo_group_broadcast", stream, group,
                [&](const comm::caller& by) { return comm::broadcast_call(by, root, x); });
}

velo_status velo_group_all_gather(velo_stream stream, velo_group group, const velo_tensor* in,
                                  const velo_tensor* out) {
  return submit("velo_group_all_gather", stream, group, [&](const comm::caller& by) {
    return comm::all_gather_call(by, in, out, nullptr);
  });
}

velo_status velo_group_all_gather_v(velo_stream stream, velo_group group, const velo_tensor* in,
                                    const int64_t* counts, const int64_t* offsets,
                                    const velo_tensor* out) {
  const comm::block_sizes parts{counts, offsets};
  return submit("velo_group_all_gather_v", stream, group,
                [&](const comm::caller& by) { return comm::all_gather_call(by, in, out, &parts); });
}

velo_status velo_group_reduce_scatter(velo_stream stream, velo_group group,
                                      const velo_reduction* reduction, const velo_tensor* in,
                                      const velo_tensor* out) {
  return submit("velo_group_reduce_scatter", stream, group, [&](const comm::caller& by) {
    return comm::reduce_scatter_call(by, read_reduction(reduction), in, out, nullptr);
  });
}

velo_status velo_group_reduce_scatter_v(velo_stream stream, velo_group group,
                                        const velo_reduction* reduction, const velo_tensor* in,
                                        const int64_t* counts, const velo_tensor* out) {
  const comm::block_sizes parts{counts, nullptr};
  return submit("velo_group_reduce_scatter_v", stream, group, [&](const comm::caller& by) {
    return comm::reduce_scatter_call(by, read_reduction(reduction), in, out, &parts);
  });
}

velo_status velo_group_all_to_all(velo_stream stream, velo_group group, const velo_tensor* in,
                                  const velo_tensor* out) {
  return submit("velo_group_all_to_all", stream, group, [&](const comm::caller& by) {
    return comm::all_to_all_call(by, in, out, nullptr, nullptr);
  });
}

velo_status velo_group_all_to_all_v(velo_stream stream, velo_group group, const velo_tensor* in,
                                    const int64_t* in_counts, const int64_t* in_offsets,
                                    const int64_t* out_counts, const int64_t* out_offsets,
                                    const velo_tensor* out) {
  const comm::block_sizes give{in_counts, in_offsets}, take{out_counts, out_offsets};
  return submit("velo_group_all_to_all_v", stream, group, [&](const comm::caller& by) {
    return comm::all_to_all_call(by, in, out, &give, &take);
  });
}

velo_status velo_group_gather(velo_stream stream, velo_group group, int32_t root,
                              const velo_tensor* in, const velo_tensor* out) {
  return submit("velo_group_gather", stream, group, [&](const comm::caller& by) {
    return comm::gather_call(by, root, in, out, nullptr);
  });
}

velo_status velo_group_gather_v(velo_stream stream, velo_group group, int32_t root,
                                const velo_tensor* in, const int64_t* counts,
                                const int64_t* offsets, const velo_tensor* out) {
  const comm::block_sizes parts{counts, offsets};
  return submit("velo_group_gather_v", stream, group, [&](const comm::caller& by) {
    return comm::gather_call(by, root, in, out, &parts);
  });
}

velo_status velo_group_scatter(velo_stream stream, velo_group group, int32_t root,
                               const velo_tensor* in, const velo_tensor* out) {
  return submit("velo_group_scatter", stream, group, [&](const comm::caller& by) {
    return comm::scatter_call(by, root, in, out, nullptr);
  });
}

velo_status velo_group_scatter_v(velo_stream stream, velo_group group, int32_t root,
                                 const velo_tensor* in, const int64_t* counts,
                                 const int64_t* offsets, const velo_tensor* out) {
  const comm::block_sizes parts{counts, offsets};
  return submit("velo_group_scatter_v", stream, group, [&](const comm::caller& by) {
    return comm::scatter_call(by, root, in, out, &parts);
  });
}

velo_status velo_group_send(velo_stream stream, velo_group group, int32_t to,
                            const velo_tensor* x) {
  return submit("velo_group_send", stream, group,
                [&](const comm::caller& by) { return comm::send_call(by, to, x); });
}

velo_status velo_group_receive(velo_stream stream, velo_group group, int32_t from,
                               const velo_tensor* x) {
  return submit("velo_group_receive", stream, group,
                [&](const comm::caller& by) { return comm::receive_call(by, from, x); });
}

velo_status velo_group_exchange(velo_stream stream, velo_group group,
                                const velo_group_message* messages, int64_t count) {
  return submit("velo_group_exchange", stream, group,
                [&](const comm::caller& by) { return comm::exchange_call(by, messages, count); });
}
}
