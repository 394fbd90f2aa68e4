// Entries of velo/collective.h.
#include "velo/collective.h"

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/group_of.hpp"
#include "capi/src/reduction.hpp"
#include "comm/collective/calls.hpp"
#include "comm/group/planned.hpp"
#include "core/handle/guard.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The struct of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 88;
static_assert(sizeof(velo_collective_desc) >= desc_size);

comm::planned& planned_of(velo_collective handle) {
  return core::use<comm::planned>(handle, "collective");
}

// Reads a collective that moves or combines elements among all ranks.
comm::operation read_collective(const comm::caller& by, const velo_collective_desc& d) {
  const comm::block_sizes in{d.in_counts, d.in_offsets}, out{d.out_counts, d.out_offsets};
  const auto reduction = [&] { return capi::read_reduction(d.reduction); };
  switch (d.kind) {
    case VELO_COLLECTIVE_ALL_REDUCE:
      return comm::all_reduce_call(by, reduction(), d.in, d.out);
    case VELO_COLLECTIVE_REDUCE:
      return comm::reduce_call(by, d.rank, reduction(), d.in, d.out);
    case VELO_COLLECTIVE_BROADCAST:
      return comm::broadcast_call(by, d.rank, d.in);
    case VELO_COLLECTIVE_ALL_GATHER:
      return comm::all_gather_call(by, d.in, d.out, nullptr);
    case VELO_COLLECTIVE_ALL_GATHER_V:
      return comm::all_gather_call(by, d.in, d.out, &out);
    case VELO_COLLECTIVE_REDUCE_SCATTER:
      return comm::reduce_scatter_call(by, reduction(), d.in, d.out, nullptr);
    case VELO_COLLECTIVE_REDUCE_SCATTER_V: {
      const comm::block_sizes counts{d.in_counts, nullptr};
      return comm::reduce_scatter_call(by, reduction(), d.in, d.out, &counts);
    }
    case VELO_COLLECTIVE_ALL_TO_ALL:
      return comm::all_to_all_call(by, d.in, d.out, nullptr, nullptr);
    case VELO_COLLECTIVE_ALL_TO_ALL_V:
      return comm::all_to_all_call(by, d.in, d.out, &in, &out);
    case VELO_COLLECTIVE_GATHER:
      return comm::gather_call(by, d.rank, d.in, d.out, nullptr);
    case VELO_COLLECTIVE_GATHER_V:
      return comm::gather_call(by, d.rank, d.in, d.out, &out);
    case VELO_COLLECTIVE_SCATTER:
      return comm::scatter_call(by, d.rank, d.in, d.out, nullptr);
    case VELO_COLLECTIVE_SCATTER_V:
      return comm::scatter_call(by, d.rank, d.in, d.out, &in);
    default:
      fail(VELO_ERR_ARGUMENT, "desc.kind", "a VELO_COLLECTIVE", text("%d", d.kind));
  }
}

// BARRIER is the default kind. If it comes with tensors, the caller forgot to set the kind.
comm::operation read_barrier(const velo_collective_desc& d) {
  if (d.in != nullptr || d.out != nullptr || d.messages != nullptr)
    fail(VELO_ERR_ARGUMENT, "desc.kind", "that of a collective with tensors or messages",
         "BARRIER, the default");
  return comm::barrier_call();
}

comm::planned_call read_call(const comm::caller& by, const velo_collective_desc& d) {
  switch (d.kind) {
    case VELO_COLLECTIVE_BARRIER:
      return read_barrier(d);
    case VELO_COLLECTIVE_SEND:
      return comm::send_call(by, d.rank, d.in);
    case VELO_COLLECTIVE_RECEIVE:
      return comm::receive_call(by, d.rank, d.in);
    case VELO_COLLECTIVE_EXCHANGE:
      return comm::exchange_call(by, d.messages, d.message_count);
    default:
      return read_collective(by, d);
  }
}

}  // namespace

extern "C" {

velo_status velo_collective_create(velo_group group, const velo_collective_desc* desc,
                                   velo_collective* collective) {
  return core::guard("velo_collective_create", [&] {
    comm::group& of = capi::group_of(group);
    const velo_collective_desc defaults = VELO_COLLECTIVE_DESC_INIT;
    const velo_collective_desc given = capi::read_struct(desc, desc_size, "desc", defaults);
    capi::required(collective, "collective");
    comm::planned_call what = read_call({of.owner(), of.rank(), of.size()}, given);
    std::visit([&](const auto& one) { of.admit(one); }, what);
    *collective = core::handle_of(
        core::make_object<comm::planned>(&of.owner(), group, of.owner(), std::move(what)));
  });
}

void velo_collective_destroy(velo_collective collective) {
  capi::destroy<comm::planned>("velo_collective_destroy", collective, "collective");
}

velo_status velo_collective_start(velo_stream stream, velo_collective collective) {
  return core::guard("velo_collective_start", [&](const core::inside_scope& here) {
    const auto& one = core::use<comm::planned>(here, collective, "collective");
    one.start(here, capi::stream_of(here, stream, one.owner()));
  });
}

velo_status velo_group_measure(velo_stream stream, velo_group group) {
  return core::guard("velo_group_measure", [&](const core::inside_scope& here) {
    comm::group& of = capi::group_of(here, group);
    of.measure(capi::stream_of(here, stream, of.owner()));
  });
}

velo_status velo_collective_explain(velo_collective collective, char* buffer, uint64_t capacity,
                                    uint64_t* needed) {
  return core::guard("velo_collective_explain", [&] {
    capi::write_text(planned_of(collective).explain().c_str(), buffer, capacity, needed);
  });
}

velo_status velo_collective_describe(velo_collective collective, char* buffer, uint64_t capacity,
                                     uint64_t* needed) {
  return core::guard("velo_collective_describe", [&] {
    capi::write_text(planned_of(collective).describe().c_str(), buffer, capacity, needed);
  });
}

}  // extern "C"
