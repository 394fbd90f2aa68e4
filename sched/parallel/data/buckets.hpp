// Gradient buckets: the gradients of ranks that hold the same parameters are reduced during the
// backward pass.
//
// A tensor with all gradients is cut into slices, which become ready one by one; consecutive slices
// form a bucket, which is one collective. A bucket is launched on a communication stream when its
// last slice is ready. All ranks launch buckets in one order: the last bucket first in the first
// step, then the order in which they became ready on rank 0 in that step. The order affects no bit
// of the results, since elements are combined in rank order (or as a host's own all_reduce does).
//
// A rank with a sharded optimizer updates its own part of each bucket. `gather` then collects the
// parameters of all ranks, in the reverse order, in which the next forward pass needs them.
//
// Invariants: the collectives' tensors outlive them. `order_` is the same on all ranks: only the
// first `finish` replaces it, after every bucket was launched, by a broadcast; a bucket that is
// ready out of order is held back. One thread uses an object at a time. A slice costs a few
// additions, a bucket one call of its collective.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/calls.hpp"
#include "comm/group/group.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/stream/event.hpp"
#include "core/stream/stream.hpp"
#include "velo/buckets.h"

namespace velo::sched {

class buckets {
 public:
  // Slice k has counts[k] elements; together they are `gradients`. desc is checked already. Throws
  // NULL, ARGUMENT, SHAPE, DTYPE, and the errors of a wrong tensor.
  buckets(velo_stream on, velo_group among, const velo_tensor* gradients,
          const std::int64_t* counts, std::int64_t count, const velo_buckets_desc& desc);
  buckets(const buckets&) = delete;
  buckets& operator=(const buckets&) = delete;

  // The slice is complete after the present work of `from`. Throws STATE for a slice that is ready
  // already.
  void ready(core::stream& from, std::int64_t slice);
  // All slices are complete after the present work of `to`, whose later work follows all
  // collectives.
  void finish(core::stream& to);

  void gather(core::stream& from, const velo_tensor* parameters);
  // Later work of `on` follows the gather of the slice's parameters.
  void wait(core::stream& on, std::int64_t slice);

  core::context& owner() const noexcept { return owner_; }
  void fill(velo_buckets_info& info) const noexcept;
  void fill(std::int64_t index, velo_bucket& of) const;

 private:
  struct bucket {
    std::int64_t first, slices;       // first slice and number of slices
    std::int64_t offset, count;       // elements
    std::vector<std::int64_t> parts;  // elements of each rank
    std::int64_t own;                 // begin of this rank's elements
    comm::operation reduce;
    std::int64_t left;  // slices that are not ready
    std::unique_ptr<core::event> gathered;
  };

  core::stream& link() const;
  comm::group& peers() const;
  comm::caller caller() const { return {owner_, rank_, ranks_}; }
  std::int64_t bucket_of(std::int64_t slice) const;
  void cut(const comm::buffer& all, const std::int64_t* counts, std::int64_t count,
           const velo_buckets_desc& desc);
  void close(std::int64_t first, std::int64_t end, std::int64_t offset, std::int64_t elements);
  void follow(core::stream& from, core::stream& link);  // link's later work follows from's
  void mark_ready(std::int64_t slice);
  void unmark_ready(std::int64_t slice) noexcept;
  void launch(core::stream& link, comm::group& to, bool all);
  void learn(core::stream& link, comm::group& to);
  void require_slice(std::int64_t slice) const;

  const velo_stream stream_;
  const velo_group group_;
  core::context& owner_;
  const int rank_, ranks_;
  const velo_bucket_mode mode_;
  const bool eager_;                  // false: finish launches everything
  std::vector<std::int64_t> begins_;  // first elements of slices, and the end
  std::vector<bucket> all_;
  std::vector<std::int64_t> order_;  // of launches
  std::vector<std::int64_t> seen_;   // in which buckets became ready in the first step
  std::vector<bool> ready_;          // by slice
  std::size_t launched_ = 0;         // buckets of this step
  std::int64_t steps_ = 0;
  bool gathers_ = false;  // the events of all buckets are recorded
  bool learned_ = false;  // order_ is the order of rank 0
  core::event before_;    // on a compute stream
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::buckets> {
  using handle = velo_buckets;
  static constexpr handle_kind& kind = kinds::buckets;
};
