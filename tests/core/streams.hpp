// A context with queues, and functions as the work of streams, for tests below the C entries.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "core/context.hpp"
#include "core/stream/stream.hpp"

namespace velo::testing {

struct step final : core::work {
  using function_type = std::function<void(core::execution&)>;

  explicit step(function_type body, std::atomic<int>* dropped = nullptr,
                core::demand what = core::demand::computes)
      : work(what), body_(std::move(body)), dropped_(dropped) {
    function = "velo_step";
  }
  void run(core::execution& state) override { body_(state); }
  void skip() noexcept override {
    if (dropped_ != nullptr) ++*dropped_;
  }

 private:
  function_type body_;
  std::atomic<int>* dropped_;
};

inline void add(core::stream& to, step::function_type body, std::atomic<int>* dropped = nullptr) {
  to.enqueue(to.make<step>(std::move(body), dropped));
}
inline void add(core::stream& to, core::demand what, step::function_type body) {
  to.enqueue(to.make<step>(std::move(body), nullptr, what));
}

struct made_context {
  made_context() : owner(core::make_context({})) {}
  ~made_context() { core::destroy_handle<core::context>(core::handle_of(owner), "context"); }
  core::stream& queue() {
    return core::make_object<core::stream>(&owner, owner, core::stream::mode::queued);
  }
  core::stream& now() { return owner.inline_stream(); }
  core::context& owner;
};

}  // namespace velo::testing
