// Gradient buckets: the gradients of all ranks are combined while the backward pass runs.
#pragma once

#include <utility>

#include "velo/buckets.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/stream.hpp"
#include "velo/tensor.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_buckets {
  static void call(velo_buckets buckets) noexcept { VELO_FN(buckets_destroy)(buckets); }
};
}  // namespace detail

// Owns the buckets of one long tensor of gradients.
class buckets : public detail::owner<velo_buckets, detail::destroy_buckets> {
 public:
  // counts: the elements of each slice, in order. stream: used only for communication.
  static outcome<buckets> create(stream_ref stream, velo_group group, const velo_tensor& gradients,
                                 const int64_t* counts, int64_t count) {
    return create_from(stream, group, gradients, counts, count, nullptr);
  }
  static outcome<buckets> create(stream_ref stream, velo_group group, const velo_tensor& gradients,
                                 const int64_t* counts, int64_t count,
                                 const velo_buckets_desc& desc) {
    return create_from(stream, group, gradients, counts, count, &desc);
  }

  operator velo_buckets() const noexcept { return get(); }

  // Declares a slice complete on this rank after the stream's work so far; once a step.
  outcome<> ready(stream_ref stream, int64_t slice) const {
    return detail::check(VELO_FN(buckets_ready)(get(), stream.get(), slice));
  }
  // Ends a step: later work of the stream runs after all collectives.
  outcome<> finish(stream_ref stream) const {
    return detail::check(VELO_FN(buckets_finish)(get(), stream.get()));
  }

  // gather: collects the parts of all ranks on every rank, in the background. wait: waits for one
  // slice of them.
  outcome<> gather(stream_ref stream, const velo_tensor& parameters) const {
    return detail::check(VELO_FN(buckets_gather)(get(), stream.get(), &parameters));
  }
  outcome<> wait(stream_ref stream, int64_t slice) const {
    return detail::check(VELO_FN(buckets_wait)(get(), stream.get(), slice));
  }

  outcome<velo_buckets_info> info() const {
    velo_buckets_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(buckets_get_info)(get(), &info);
    return detail::finish<velo_buckets_info>(status, info);
  }
  outcome<velo_bucket> bucket(int64_t index) const {
    velo_bucket one = {};
    one.struct_size = sizeof one;
    const velo_status status = VELO_FN(buckets_get_bucket)(get(), index, &one);
    return detail::finish<velo_bucket>(status, one);
  }

 private:
  static outcome<buckets> create_from(stream_ref stream, velo_group group,
                                      const velo_tensor& gradients, const int64_t* counts,
                                      int64_t count, const velo_buckets_desc* desc) {
    velo_buckets handle = nullptr;
    const velo_status status =
        VELO_FN(buckets_create)(stream.get(), group, &gradients, counts, count, desc, &handle);
    buckets made;
    made.reset(handle);
    return detail::finish<buckets>(status, std::move(made));
  }
};

static_assert(sizeof(buckets) == sizeof(void*));

VELO_CPP_END
