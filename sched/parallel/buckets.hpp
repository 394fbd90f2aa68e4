// Gradient buckets: gradients of ranks that hold the same parameters, combined while the backward
// pass goes on.
//
// One long tensor of gradients is cut into slices, which become ready one by one, and consecutive
// slices into buckets, each one collective. A bucket whose last slice is ready is sent off on a
// stream of communication's own; since all ranks must call alike, buckets go in one order on all:
// the last first, until a step has shown rank 0 in which order they become ready, which is then
// everybody's. Which bucket goes when decides no bit of the results: elements are combined in rank
// order wherever they are.
//
// The part of a bucket that is a rank's own is what it updates where the optimizer's state is
// sharded; `gather` brings the parameters of all together again, those first that the next forward
// pass needs first: in the other order.
//
// Invariant: what the collectives were given lives until they are done. Not for two threads at
// once. Cost of a slice: a few additions; of a bucket: a call of its collective.
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
  // Slice k has counts[k] elements; together they are `gradients`. desc: checked. Throws NULL,
  // ARGUMENT, SHAPE, DTYPE and what is wrong with a tensor.
  buckets(velo_stream on, velo_group among, const velo_tensor* gradients,
          const std::int64_t* counts, std::int64_t count, const velo_buckets_desc& desc);
  buckets(const buckets&) = delete;
  buckets& operator=(const buckets&) = delete;

  // A slice is what the work of `from` so far makes it. Throws STATE when told already.
  void ready(core::stream& from, std::int64_t slice);
  // All slices are; later work of `to` comes after all collectives.
  void finish(core::stream& to);

  void gather(core::stream& from, const velo_tensor* parameters);
  // Later work of `on` comes after the parameters of a slice.
  void wait(core::stream& on, std::int64_t slice);

  core::context& owner() const noexcept { return owner_; }
  void fill(velo_buckets_info& info) const noexcept;
  void fill(std::int64_t index, velo_bucket& of) const;

 private:
  struct bucket {
    std::int64_t first, slices;       // slices
    std::int64_t offset, count;       // elements
    std::vector<std::int64_t> parts;  // elements of each rank
    std::int64_t own;                 // where this rank's begin
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
  void follow(core::stream& from, core::stream& link);  // link's later work comes after from's
  void tell(std::int64_t slice);
  void take_back(std::int64_t slice) noexcept;
  void send(core::stream& link, comm::group& to, bool all);
  void learn(core::stream& link, comm::group& to);
  void require_slice(std::int64_t slice) const;

  const velo_stream stream_;
  const velo_group group_;
  core::context& owner_;
  const int rank_, ranks_;
  const velo_bucket_mode mode_;
  const bool eager_;                  // else everything is sent off by finish
  std::vector<std::int64_t> begins_;  // of slices, and the end of the last
  std::vector<bucket> all_;
  std::vector<std::int64_t> order_;  // in which buckets go
  std::vector<std::int64_t> seen_;   // in which they became ready in the first step
  std::vector<bool> told_;           // of slices
  std::size_t sent_ = 0;             // buckets of this step
  std::int64_t steps_ = 0;
  bool gathers_ = false;  // the events of all buckets have been recorded
  bool learned_ = false;  // order_ is what rank 0 has seen
  core::event before_;    // of a compute stream
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::buckets> {
  using handle = velo_buckets;
  static constexpr handle_kind& kind = kinds::buckets;
};
