// The objects behind velo_dispatcher and velo_routing, and the checks of their calls.
//
// A dispatcher has the layout of a layer's experts and their capacity. A routing owns the routes of
// one micro-batch: `set` replaces them by new ones, so that calls in flight keep theirs. Invariant:
// a routing is without choices, or set until `dispatch_backward` or `reset`; the calls between need
// counts that are known. A call costs some checks beside its movement of rows.
#pragma once

#include <atomic>
#include <memory>

#include "comm/group/buffer.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/stream/event.hpp"
#include "core/stream/stream.hpp"
#include "sched/moe/choice_exchange.hpp"
#include "sched/moe/row_exchange.hpp"
#include "velo/dispatcher.h"

namespace velo::sched {

class routing;

class dispatcher {
 public:
  // Throws ARGUMENT.
  dispatcher(velo_group among, const velo_dispatcher_desc& desc);
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  core::context& owner() const noexcept { return owner_; }
  const expert_layout& layout() const noexcept { return layout_; }
  const capacity_rule& capacity() const noexcept { return capacity_; }
  comm::group& group() const;        // throws HANDLE
  comm::group& batch_group() const;  // of the ranks of a micro-batch; throws HANDLE
  void fill(velo_dispatcher_info& info) const noexcept;
  std::int64_t next_serial() noexcept { return ++routings_; }  // of a routing that is set

  // These throw as the C functions do.
  void dispatch(core::stream& on, routing& by, const velo_tensor* tokens, const velo_tensor* rows);
  void combine(core::stream& on, routing& by, const velo_tensor* rows, const velo_tensor* weights,
               const velo_tensor* tokens);
  struct combine_gradient {
    const velo_tensor *dtokens, *rows, *weights, *drows, *dweights;
  };
  void combine_backward(core::stream& on, routing& by, const combine_gradient& of);
  void dispatch_backward(core::stream& on, routing& by, const velo_tensor* drows,
                         const velo_tensor* dtokens);

 private:
  struct call;

  const velo_group group_, batch_group_;
  core::context& owner_;
  const expert_layout layout_;
  const capacity_rule capacity_;
  std::atomic<std::int64_t> routings_{0};  // set so far
};

class routing {
 public:
  routing(velo_dispatcher of, core::context& owner) : of_(of), known_(owner) {}
  routing(const routing&) = delete;
  routing& operator=(const routing&) = delete;

  dispatcher& of() const;  // throws HANDLE
  velo_dispatcher handle_of_dispatcher() const noexcept { return of_; }
  void set(core::stream& on, const velo_tensor* choices, const velo_tensor* scores,
           const velo_tensor* places);
  const row_routes& wait();                           // throws STATE
  std::shared_ptr<const row_routes> require() const;  // routes with counts; throws STATE
  void reset() noexcept { routes_ = nullptr; }

 private:
  void require_set() const;
  given_choices read(const velo_tensor* choices, const velo_tensor* scores,
                     const velo_tensor* places) const;
  bool missed_by_peers(const core::stream& on, const row_routes& routes) const;
  void submit_choices(core::stream& on, const std::shared_ptr<row_routes>& routes,
                      const given_choices& given);

  const velo_dispatcher of_;
  std::shared_ptr<row_routes> routes_;  // nullptr: without choices
  core::event known_;
  bool awaited_ = false;  // the counts of routes_ are there
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::dispatcher> {
  using handle = velo_dispatcher;
  static constexpr handle_kind& kind = kinds::dispatcher;
};
template <>
struct velo::core::handle_traits<velo::sched::routing> {
  using handle = velo_routing;
  static constexpr handle_kind& kind = kinds::routing;
};
