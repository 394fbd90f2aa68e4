// A transport that forwards all calls to another one: tests override one of them. Groups over such
// transports.
#pragma once

#include <memory>
#include <utility>

#include "comm/group/group.hpp"
#include "core/context.hpp"

namespace velo::testing {

class forwarding : public comm::transport {
 public:
  explicit forwarding(std::unique_ptr<comm::transport> link) : link_(std::move(link)) {}
  velo_transport kind() const noexcept override { return link_->kind(); }
  int rank() const noexcept override { return link_->rank(); }
  int size() const noexcept override { return link_->size(); }
  void run(const comm::operation& what, core::execution& state) override {
    link_->run(what, state);
  }
  void run_messages(const comm::message_batch& what, core::execution& state) override {
    link_->run_messages(what, state);
  }
  void settle() noexcept override { link_->settle(); }
  void fail(const comm::fault& why) noexcept override { link_->fail(why); }
  bool failed(comm::fault& why) const noexcept override { return link_->failed(why); }
  void describe(core::json_writer& to) const override { link_->describe(to); }

 private:
  const std::unique_ptr<comm::transport> link_;
};

// A group of a context over a transport of the test.
inline velo_group group_over(velo_context context, std::unique_ptr<comm::transport> link,
                             const char* name, bool verifies = false,
                             std::int64_t timeout_ns = 20000000000) {
  auto& owner = core::resolve<core::context>(context, "context");
  return core::handle_of(core::make_object<comm::group>(
      &owner, owner, std::move(link), comm::group_settings{name, timeout_ns, verifies}));
}

}  // namespace velo::testing
