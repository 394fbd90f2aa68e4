// The cut into buckets, the readiness of slices, and launches in one order.
#include "sched/parallel/data/buckets.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/context.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"
#include "core/tensor/check.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

constexpr std::int64_t grain = 16;  // parts of a bucket begin at multiples of it: whole lines

bool is_floating(velo_dtype t) {
  return t.code == VELO_DTYPE_BFLOAT || (t.code == VELO_DTYPE_FLOAT && t.bits >= 16);
}

// A range of a compact tensor. The result points to `count`.
velo_tensor elements_of(const velo_tensor& all, std::int64_t offset, const std::int64_t& count) {
  velo_tensor one = all;
  one.ndim = 1;
  one.shape = const_cast<std::int64_t*>(&count);
  one.strides = nullptr;
  one.byte_offset += static_cast<std::uint64_t>(offset * (all.dtype.bits / 8));
  return one;
}

core::context& context_of(velo_group among) {
  return core::resolve<comm::group>(among, "group").owner();
}

}  // namespace

buckets::buckets(velo_stream on, velo_group among, const velo_tensor* gradients,
                 const std::int64_t* counts, std::int64_t count, const velo_buckets_desc& desc)
    : stream_(on),
      group_(among),
      owner_(context_of(among)),
      rank_(peers().rank()),
      ranks_(peers().size()),
      mode_(desc.mode),
      eager_(owner_.optimization() >= 2),
      before_(owner_) {
  const comm::buffer all = comm::buffer_of(owner_, gradients, "gradients");
  if (!is_floating(all.dtype)) core::refuse_dtype(all.dtype, "floating-point numbers", "gradients");
  cut(all, counts, count, desc);
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = desc.scale == 0 ? VELO_REDUCE_AVG : VELO_REDUCE_SUM;
  how.scale = desc.scale == 0 ? 1 : desc.scale;
  for (bucket& each : all_) {
    const velo_tensor whole = elements_of(*gradients, each.offset, each.count);
    if (mode_ == VELO_BUCKETS_ALL_REDUCE) {
      each.reduce = comm::all_reduce_call(caller(), how, &whole, &whole);
      continue;
    }
    const velo_tensor own = elements_of(*gradients, each.own, each.parts[core::at(rank_)]);
    const comm::block_sizes parts{each.parts.data(), nullptr};
    each.reduce = comm::reduce_scatter_call(caller(), how, &whole, &own, &parts);
  }
  order_.resize(all_.size());
  std::iota(order_.rbegin(), order_.rend(), 0);
  seen_.reserve(all_.size());
  ready_.resize(static_cast<std::size_t>(count));
}

core::stream& buckets::link() const {
  return core::use<core::stream>(stream_, "buckets");
}
comm::group& buckets::peers() const {
  return core::use<comm::group>(group_, "buckets");
}

void buckets::cut(const comm::buffer& all, const std::int64_t* counts, std::int64_t count,
                  const velo_buckets_desc& desc) {
  begins_.push_back(0);
  for (std::int64_t k = 0; k < count; ++k) {
    if (counts[k] < 1 || counts[k] > all.count - begins_.back())
      fail(VELO_ERR_ARGUMENT, "counts",
           core::concat("slices of 1 or more elements, ", all.count, " together"),
           core::concat("counts[", k, "] = ", counts[k]));
    begins_.push_back(begins_.back() + counts[k]);
  }
  if (begins_.back() != all.count)
    fail(VELO_ERR_ARGUMENT, "counts",
         core::concat("slices of 1 or more elements, ", all.count, " together"),
         core::number(begins_.back()));
  std::int64_t first = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t begin = begins_[core::at(first)], end = begins_[core::at(k) + 1];
    const auto bytes = static_cast<std::uint64_t>((end - begin) * all.size());
    if (bytes < desc.bytes && k + 1 < count) continue;
    close(first, k + 1, begin, end - begin);
    first = k + 1;
  }
}

void buckets::close(std::int64_t first, std::int64_t end, std::int64_t offset,
                    std::int64_t elements) {
  bucket one{first,    end - first, offset,
             elements, {},          offset,
             {},       end - first, std::make_unique<core::event>(owner_)};
  const std::int64_t share = core::round_up(core::ceil_div(elements, ranks_), grain);
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::int64_t begin = std::min(elements, rank * share);
    if (rank == rank_) one.own = offset + begin;
    one.parts.push_back(std::min(elements, begin + share) - begin);
  }
  all_.push_back(std::move(one));
}

std::int64_t buckets::bucket_of(std::int64_t slice) const {
  const auto after = std::partition_point(all_.begin(), all_.end(),
                                          [&](const bucket& one) { return one.first <= slice; });
  return after - all_.begin() - 1;
}

void buckets::require_slice(std::int64_t slice) const {
  const auto count = static_cast<std::int64_t>(ready_.size());
  if (slice < 0 || slice >= count)
    fail(VELO_ERR_ARGUMENT, "slice", core::concat("that of one of ", count, " slices"),
         core::number(slice));
}

void buckets::follow(core::stream& from, core::stream& link) {
  if (from.is_inline() || &from == &link) return;  // its work is done or in order
  from.record(before_);
  link.wait(before_);
}

void buckets::mark_ready(std::int64_t slice) {
  ready_[core::at(slice)] = true;
  const std::int64_t index = bucket_of(slice);
  if (--all_[core::at(index)].left == 0 && !learned_) seen_.push_back(index);
}

void buckets::unmark_ready(std::int64_t slice) noexcept {
  ready_[core::at(slice)] = false;
  const std::int64_t index = bucket_of(slice);
  if (++all_[core::at(index)].left == 1 && !learned_) seen_.pop_back();
}

void buckets::launch(core::stream& link, comm::group& to, bool all) {
  if (!all && !eager_) return;
  while (launched_ < order_.size()) {
    const bucket& next = all_[core::at(order_[launched_])];
    if (next.left > 0) return;
    to.submit(link, next.reduce);
    ++launched_;
  }
}

void buckets::ready(core::stream& from, std::int64_t slice) {
  require_slice(slice);
  core::stream& on = link();
  comm::group& to = peers();
  if (ready_[core::at(slice)])
    fail(VELO_ERR_STATE, "slice", "each slice once in a step", core::concat(slice, " again"));
  follow(from, on);
  mark_ready(slice);
  try {
    launch(on, to, false);
  } catch (...) {  // such as a full queue: the caller may try again
    unmark_ready(slice);
    throw;
  }
}

void buckets::finish(core::stream& to) {
  if (to.is_inline() || !learned_) owner_.require_can_wait("buckets");
  core::stream& on = link();
  comm::group& among = peers();
  follow(to, on);
  for (std::int64_t slice = 0; slice < static_cast<std::int64_t>(ready_.size()); ++slice)
    if (!ready_[core::at(slice)]) mark_ready(slice);
  launch(on, among, true);
  if (!learned_) learn(on, among);
  for (bucket& each : all_) each.left = each.slices;
  std::fill(ready_.begin(), ready_.end(), false);
  launched_ = 0;
  ++steps_;
  if (to.is_inline()) return on.synchronize();
  if (&to == &on) return;
  on.record(before_);
  to.wait(before_);
}

// Broadcasts rank 0's order for all later steps. It waits, so that no later step sees its writes.
void buckets::learn(core::stream& link, comm::group& to) {
  const auto count = static_cast<std::int64_t>(seen_.size());
  velo_tensor order{};
  order.data = seen_.data();
  order.device = owner_.device();
  order.ndim = 1;
  order.dtype = {VELO_DTYPE_INT, 64, 1};
  order.shape = const_cast<std::int64_t*>(&count);
  to.submit(link, comm::broadcast_call(caller(), 0, &order));
  link.synchronize();
  order_.swap(seen_);
  learned_ = true;
}

void buckets::gather(core::stream& from, const velo_tensor* parameters) {
  const comm::buffer all = comm::buffer_of(owner_, parameters, "parameters");
  comm::require_count(all, "parameters", begins_.back(), "as many as gradients");
  core::stream& on = link();
  comm::group& to = peers();
  follow(from, on);
  for (auto next = order_.rbegin(); next != order_.rend(); ++next) {
    const bucket& of = all_[core::at(*next)];
    const velo_tensor whole = elements_of(*parameters, of.offset, of.count),
                      own = elements_of(*parameters, of.own, of.parts[core::at(rank_)]);
    const comm::block_sizes parts{of.parts.data(), nullptr};
    to.submit(on, comm::all_gather_call(caller(), &own, &whole, &parts));
    on.record(*of.gathered);
  }
  gathers_ = true;
}

void buckets::wait(core::stream& on, std::int64_t slice) {
  require_slice(slice);
  core::stream& link_now = link();
  if (!gathers_ || &on == &link_now) return;
  on.wait(*all_[core::at(bucket_of(slice))].gathered);
  if (on.is_inline()) link_now.idle();
}

void buckets::fill(velo_buckets_info& info) const noexcept {
  info.mode = mode_;
  info.slices = static_cast<std::int64_t>(ready_.size());
  info.buckets = static_cast<std::int64_t>(all_.size());
  info.steps = steps_;
}

void buckets::fill(std::int64_t index, velo_bucket& of) const {
  const auto count = static_cast<std::int64_t>(all_.size());
  if (index < 0 || index >= count)
    fail(VELO_ERR_ARGUMENT, "index", core::concat("that of one of ", count, " buckets"),
         core::number(index));
  const bucket& one = all_[core::at(index)];
  of.first = one.first;
  of.slices = one.slices;
  of.offset = one.offset;
  of.count = one.count;
  of.own_offset = one.own;
  of.own_count = one.parts[core::at(rank_)];
  const auto place = std::find(order_.begin(), order_.end(), index) - order_.begin();
  of.place = static_cast<std::int32_t>(place);
}

}  // namespace velo::sched
