// The transport of a group of one rank: every collective is a copy, or nothing.
#pragma once

#include <atomic>
#include <mutex>

#include "comm/transport/transport.hpp"

namespace velo::comm {

class self_transport final : public transport {
 public:
  velo_transport kind() const noexcept override { return VELO_TRANSPORT_SELF; }
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }

  void run(const operation& what, core::execution& state) override;
  void run_messages(const message_batch& batch, core::execution& state) override;
  void explain(const operation&, explanation& to) const override {
    to.consider("copy", true, "one rank");
  }
  void explain_messages(const message_batch&, explanation& to) const override {
    to.consider("copy", true, "one rank");
  }
  void fail(const fault& why) noexcept override;
  bool failed(fault& why) const noexcept override;
  void describe(core::json_writer& to) const override;

 private:
  std::atomic<std::uint64_t> done_{0};
  mutable std::mutex lock_;
  fault fault_;
};

}  // namespace velo::comm
