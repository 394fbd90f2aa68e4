// A host's own collectives as a class: groups over connections that the host has made.
#pragma once

#include <type_traits>
#include <utility>

#include "velo/detail/call.hpp"
#include "velo/host.h"

VELO_CPP_BEGIN

namespace detail {
#define VELO_HOST_MEMBER(name)                 \
  template <class Host, class = void>          \
  struct host_has_##name : std::false_type {}; \
  template <class Host>                        \
  struct host_has_##name<Host, std::void_t<decltype(&Host::name)>> : std::true_type {}
VELO_HOST_MEMBER(all_gather);
VELO_HOST_MEMBER(all_to_all);
VELO_HOST_MEMBER(broadcast);
VELO_HOST_MEMBER(all_reduce);
VELO_HOST_MEMBER(send);
VELO_HOST_MEMBER(receive);
VELO_HOST_MEMBER(part);
VELO_HOST_MEMBER(abort);
VELO_HOST_MEMBER(release);
#undef VELO_HOST_MEMBER
}  // namespace detail

// The table of a host's functions, of an object whose members are those of the table, without user:
//
//   struct my_host {
//     int64_t all_gather(const velo_host_call& call, const void* in, void* out, int64_t bytes);
//     void abort(const char* why);
//     void release();
//   };
//   velo_group_desc desc = VELO_GROUP_DESC_INIT;
//   const velo_host_collectives table = velo::host_functions(mine);
//   desc.transport = VELO_TRANSPORT_HOST, desc.host = &table;
//
// A function that the class lacks, or overloads, the host does not have. The object must live until
// its release is called, or without one as long as anybody may call its functions.
template <class Host>
velo_host_collectives host_functions(Host& host) {
  velo_host_collectives all = VELO_HOST_COLLECTIVES_INIT;
  all.user = &host;
  if constexpr (detail::host_has_all_gather<Host>::value)
    all.all_gather = [](void* user, const velo_host_call* call, const void* in, void* out,
                        int64_t bytes) {
      return static_cast<Host*>(user)->all_gather(*call, in, out, bytes);
    };
  if constexpr (detail::host_has_all_to_all<Host>::value)
    all.all_to_all = [](void* user, const velo_host_call* call, const void* in,
                        const int64_t* in_bytes, void* out, const int64_t* out_bytes) {
      return static_cast<Host*>(user)->all_to_all(*call, in, in_bytes, out, out_bytes);
    };
  if constexpr (detail::host_has_broadcast<Host>::value)
    all.broadcast = [](void* user, const velo_host_call* call, int32_t root, void* data,
                       int64_t bytes) {
      return static_cast<Host*>(user)->broadcast(*call, root, data, bytes);
    };
  if constexpr (detail::host_has_all_reduce<Host>::value)
    all.all_reduce = [](void* user, const velo_host_call* call, velo_reduce_op op,
                        const velo_dtype* dtype, const void* in, void* out, int64_t count) {
      return static_cast<Host*>(user)->all_reduce(*call, op, *dtype, in, out, count);
    };
  if constexpr (detail::host_has_send<Host>::value)
    all.send = [](void* user, const velo_host_call* call, int32_t to, const void* data,
                  int64_t bytes) { return static_cast<Host*>(user)->send(*call, to, data, bytes); };
  if constexpr (detail::host_has_receive<Host>::value)
    all.receive = [](void* user, const velo_host_call* call, int32_t from, void* data,
                     int64_t bytes) {
      return static_cast<Host*>(user)->receive(*call, from, data, bytes);
    };
  if constexpr (detail::host_has_part<Host>::value)
    all.part = [](void* user, const velo_host_call* call, const int32_t* ranks, int32_t count,
                  velo_host_collectives* made) {
      return static_cast<Host*>(user)->part(*call, ranks, count, *made);
    };
  if constexpr (detail::host_has_abort<Host>::value)
    all.abort = [](void* user, const char* why) { static_cast<Host*>(user)->abort(why); };
  if constexpr (detail::host_has_release<Host>::value)
    all.release = [](void* user) { static_cast<Host*>(user)->release(); };
  return all;
}

VELO_CPP_END
