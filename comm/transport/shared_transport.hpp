// The transport of ranks that share memory, whoever owns that memory: the engine of `local` and `shm`.
#pragma once

#include <memory>
#include <mutex>

#include "comm/transport/meeting.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

class shared_transport final : public transport {
 public:
  struct setting {
    velo_transport kind;
    int rank;
    std::int64_t timeout_ns;
  };
  // memory: keeps the area mapped. watch: may be nullptr.
  shared_transport(const setting& set, const shared_area& area, std::shared_ptr<void> memory,
                   std::unique_ptr<peer_watch> watch);
  ~shared_transport() override;

  velo_transport kind() const noexcept override { return kind_; }
  int rank() const noexcept override { return at_.rank; }
  int size() const noexcept override { return at_.area.ranks(); }

  void run(const operation& what, core::execution& state) override;
  void fail(const fault& why) noexcept override { at_.area.note(why); }
  bool failed(fault& why) const noexcept override { return at_.area.noted(why); }
  void describe(std::string& json) const override;

 private:
  const velo_transport kind_;
  const std::shared_ptr<void> memory_;
  const std::unique_ptr<peer_watch> watch_;
  place at_;
};

}  // namespace velo::comm
