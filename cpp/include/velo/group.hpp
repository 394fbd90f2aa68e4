// Groups: ranks that work together, and their collectives.
#pragma once

#include <cstddef>
#include <utility>

#include "velo/collective.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/dispatch.h"
#include "velo/group.h"
#include "velo/stream.hpp"
#include "velo/tensor.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_group {
  static void call(velo_group group) noexcept { VELO_FN(group_destroy)(group); }
};
}  // namespace detail

// How a collective combines elements. It converts from an operation or from a function.
struct combine : velo_reduction {
  combine(velo_reduce_op how = VELO_REDUCE_SUM, double factor = 1) noexcept : velo_reduction() {
    struct_size = sizeof(velo_reduction);
    op = how;
    scale = factor;
  }
  combine(velo_reduce_fn function, void* passed) noexcept : combine(VELO_REDUCE_CUSTOM) {
    fn = function;
    user = passed;
  }
};

// Whether groups can use a transport on this system; the failure names what is missing.
inline outcome<> query(velo_context context, velo_transport transport) {
  return detail::check(VELO_FN(transport_query)(context, transport));
}

// Owns a rank of a group.
class group : public detail::owner<velo_group, detail::destroy_group> {
 public:
  // Without a description: a rank of the launcher's group, or a group of one if there is no
  // launcher.
  static outcome<group> create(velo_context context) { return create_from(context, nullptr); }
  static outcome<group> create(velo_context context, const velo_group_desc& desc) {
    return create_from(context, &desc);
  }

  // All ranks of a group of this process's threads, at most 1024; rank i is in contexts[i]. The
  // result is any vector of groups: create_local<std::vector<velo::group>>(contexts, 4). desc: may
  // be NULL.
  template <class Groups>
  static outcome<Groups> create_local(const velo_context* contexts, int32_t count,
                                      const velo_group_desc* desc = nullptr) {
    velo_group handles[1024] = {};
    const velo_status status = VELO_FN(group_create_local)(contexts, count, desc, handles);
    Groups made;
    if (status == VELO_OK) made.resize(static_cast<size_t>(count));
    for (int32_t i = 0; status == VELO_OK && i < count; ++i)
      made[static_cast<size_t>(i)].reset(handles[i]);
    return detail::finish<Groups>(status, std::move(made));
  }

  // A group of some ranks of this group. All of these call it with the same list.
  outcome<group> part(const int32_t* ranks, int32_t count,
                      const velo_group_desc* desc = nullptr) const {
    velo_group handle = nullptr;
    const velo_status status = VELO_FN(group_create_part)(get(), ranks, count, desc, &handle);
    return own(status, handle);
  }

  // A group of the surviving ranks of this group, which has ended.
  outcome<group> shrink(const velo_group_desc* desc = nullptr) const {
    velo_group handle = nullptr;
    const velo_status status = VELO_FN(group_shrink)(get(), desc, &handle);
    return own(status, handle);
  }

  operator velo_group() const noexcept { return get(); }

  // Ends the group on all ranks, without waiting for any.
  outcome<> abort() const { return detail::check(VELO_FN(group_abort)(get())); }

  // Rank, size, and progress.
  outcome<velo_group_info> info() const {
    velo_group_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(group_get_info)(get(), &info);
    return detail::finish<velo_group_info>(status, info);
  }

  // The group's whole state as JSON, in any string: describe<std::string>().
  template <class String>
  outcome<String> describe() const {
    return detail::text<String>([this](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(group_describe)(get(), buffer, capacity, needed);
    });
  }

  // The last 4096 operations that this rank called, as JSON in any string.
  template <class String>
  outcome<String> history() const {
    return detail::text<String>([this](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(group_history)(get(), buffer, capacity, needed);
    });
  }

  // Measures the times of collectives, for collective::explain; all ranks call it.
  outcome<> measure(stream_ref stream) const {
    return detail::check(VELO_FN(group_measure)(stream.get(), get()));
  }

  // Returns when all ranks have called it.
  outcome<> barrier(stream_ref stream) const {
    return detail::check(VELO_FN(group_barrier)(stream.get(), get()));
  }

  // Combines the elements of all ranks' `in` into every rank's `out`, which may be `in`.
  outcome<> all_reduce(stream_ref stream, const velo_tensor& in, const velo_tensor& out,
                       const combine& how = {}) const {
    return detail::check(VELO_FN(group_all_reduce)(stream.get(), get(), &how, &in, &out));
  }

  // The same into the root's `out`; other ranks may pass nullptr.
  outcome<> reduce(stream_ref stream, int32_t root, const velo_tensor& in, const velo_tensor* out,
                   const combine& how = {}) const {
    return detail::check(VELO_FN(group_reduce)(stream.get(), get(), root, &how, &in, out));
  }

  // Copies the root's x to all ranks.
  outcome<> broadcast(stream_ref stream, int32_t root, const velo_tensor& x) const {
    return detail::check(VELO_FN(group_broadcast)(stream.get(), get(), root, &x));
  }

  // Concatenates all ranks' `in` in every rank's `out`. With counts, the sizes may differ.
  outcome<> all_gather(stream_ref stream, const velo_tensor& in, const velo_tensor& out) const {
    return detail::check(VELO_FN(group_all_gather)(stream.get(), get(), &in, &out));
  }
  outcome<> all_gather(stream_ref stream, const velo_tensor& in, const int64_t* counts,
                       const int64_t* offsets, const velo_tensor& out) const {
    return detail::check(
        VELO_FN(group_all_gather_v)(stream.get(), get(), &in, counts, offsets, &out));
  }

  // Combines all ranks' `in`; each rank gets a part of the result. With counts, the sizes may
  // differ.
  outcome<> reduce_scatter(stream_ref stream, const velo_tensor& in, const velo_tensor& out,
                           const combine& how = {}) const {
    return detail::check(VELO_FN(group_reduce_scatter)(stream.get(), get(), &how, &in, &out));
  }
  outcome<> reduce_scatter(stream_ref stream, const velo_tensor& in, const int64_t* counts,
                           const velo_tensor& out, const combine& how = {}) const {
    return detail::check(
        VELO_FN(group_reduce_scatter_v)(stream.get(), get(), &how, &in, counts, &out));
  }

  // Part j of rank i's `in` becomes part i of rank j's `out`. With counts, the sizes may differ.
  outcome<> all_to_all(stream_ref stream, const velo_tensor& in, const velo_tensor& out) const {
    return detail::check(VELO_FN(group_all_to_all)(stream.get(), get(), &in, &out));
  }
  outcome<> all_to_all(stream_ref stream, const velo_tensor& in, const int64_t* in_counts,
                       const int64_t* in_offsets, const int64_t* out_counts,
                       const int64_t* out_offsets, const velo_tensor& out) const {
    return detail::check(VELO_FN(group_all_to_all_v)(stream.get(), get(), &in, in_counts,
                                                     in_offsets, out_counts, out_offsets, &out));
  }

  // Sends the rows of `in` to the ranks that their targets name; each row crosses to another host
  // at most once. This group has the ranks of a host, `across` the ranks with the same local rank
  // on all hosts.
  outcome<> dispatch(stream_ref stream, const group& across, const velo_tensor& in,
                     const velo_tensor& targets, const int64_t* out_counts,
                     const velo_tensor& out) const {
    return detail::check(VELO_FN(group_dispatch)(stream.get(), get(), across.get(), &in, &targets,
                                                 out_counts, &out));
  }
  // Returns rows to the ranks that dispatched them. The rows that come from one row are summed,
  // with weights if given.
  outcome<> combine_rows(stream_ref stream, const group& across, const velo_tensor& in,
                         const int64_t* in_counts, const velo_tensor& targets,
                         const velo_tensor* weights, const velo_tensor& out) const {
    return detail::check(VELO_FN(group_combine)(stream.get(), get(), across.get(), &in, in_counts,
                                                &targets, weights, &out));
  }

  // Concatenates all ranks' `in` in the root's `out`; other ranks may pass nullptr.
  outcome<> gather(stream_ref stream, int32_t root, const velo_tensor& in,
                   const velo_tensor* out) const {
    return detail::check(VELO_FN(group_gather)(stream.get(), get(), root, &in, out));
  }
  outcome<> gather(stream_ref stream, int32_t root, const velo_tensor& in, const int64_t* counts,
                   const int64_t* offsets, const velo_tensor* out) const {
    return detail::check(
        VELO_FN(group_gather_v)(stream.get(), get(), root, &in, counts, offsets, out));
  }

  // Sends each rank a part of the root's `in`; other ranks may pass nullptr for `in`.
  outcome<> scatter(stream_ref stream, int32_t root, const velo_tensor* in,
                    const velo_tensor& out) const {
    return detail::check(VELO_FN(group_scatter)(stream.get(), get(), root, in, &out));
  }
  outcome<> scatter(stream_ref stream, int32_t root, const velo_tensor* in, const int64_t* counts,
                    const int64_t* offsets, const velo_tensor& out) const {
    return detail::check(
        VELO_FN(group_scatter_v)(stream.get(), get(), root, in, counts, offsets, &out));
  }

  // Messages to and from another rank, in order. exchange: several at the same time.
  outcome<> send(stream_ref stream, int32_t to, const velo_tensor& x) const {
    return detail::check(VELO_FN(group_send)(stream.get(), get(), to, &x));
  }
  outcome<> receive(stream_ref stream, int32_t from, const velo_tensor& x) const {
    return detail::check(VELO_FN(group_receive)(stream.get(), get(), from, &x));
  }
  outcome<> exchange(stream_ref stream, const velo_group_message* messages, int64_t count) const {
    return detail::check(VELO_FN(group_exchange)(stream.get(), get(), messages, count));
  }

 private:
  static outcome<group> create_from(velo_context context, const velo_group_desc* desc) {
    velo_group handle = nullptr;
    const velo_status status = VELO_FN(group_create)(context, desc, &handle);
    return own(status, handle);
  }
  static outcome<group> own(velo_status status, velo_group handle) {
    group made;
    made.reset(handle);
    return detail::finish<group>(status, std::move(made));
  }
};

static_assert(sizeof(group) == sizeof(void*));

VELO_CPP_END
