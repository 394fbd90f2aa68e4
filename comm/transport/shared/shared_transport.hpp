// The transport of ranks that share memory, whoever owns that memory: the engine of the transports
// `local` and `shm`.
#pragma once

#include <functional>
#include <memory>

#include "comm/transport/shared/area_notes.hpp"
#include "comm/transport/shared/shared_round.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

// The rendezvous of ranks that form a subgroup of their group.
class subgroup_rendezvous {
 public:
  virtual ~subgroup_rendezvous() = default;
  // check: called periodically; throws when the subgroup cannot form any more. Throws
  // missing_ranks, MEMORY, IO, and what check throws.
  virtual std::unique_ptr<transport> join(const subgroup_terms& of,
                                          const std::function<void()>& check) = 0;
};

class shared_transport final : public transport {
 public:
  struct setting {
    velo_transport kind;
    int rank;
    std::int64_t timeout_ns;
    progress_hook* progress = nullptr;
  };
  // memory: keeps the area mapped. watch, mappings: may be nullptr.
  shared_transport(const setting& set, const shared_area& area, std::shared_ptr<void> memory,
                   std::unique_ptr<liveness_watch> watch,
                   std::shared_ptr<subgroup_rendezvous> subgroups,
                   std::unique_ptr<peer_mappings> mappings = nullptr);
  ~shared_transport() override;

  velo_transport kind() const noexcept override { return kind_; }
  int rank() const noexcept override { return self_.rank; }
  int size() const noexcept override { return self_.area.ranks(); }

  void run(const operation& op, core::execution& state) override;
  void run_messages(const message_batch& batch, core::execution& state) override;
  void explain(const operation& op, explanation& to) const override;
  void explain_messages(const message_batch& batch, explanation& to) const override;
  bool starts_messages() const noexcept override { return true; }
  std::int64_t relay_slot_bytes() const noexcept override {
    return static_cast<std::int64_t>(self_.area.relay_bytes());
  }
  bool shows_tensors() const noexcept override { return kind_ == VELO_TRANSPORT_LOCAL; }
  std::unique_ptr<relay> begin_relay(const operation& op, core::execution& state) override;
  void conclude() override;
  void settle() noexcept override;
  void fail(const fault& why) noexcept override { self_.area.record_fault(self_.rank, why); }
  bool has_failed() const noexcept override { return self_.area.has_fault(); }
  bool failed(fault& why) const noexcept override { return self_.area.read_fault(self_.rank, why); }
  std::unique_ptr<transport> subgroup(const subgroup_terms& of) override;
  std::unique_ptr<transport> shrink(const subgroup_terms& of) override;
  wait_board make_wait_board() const override {
    return wait_board(std::make_shared<area_notes>(self_.area, memory_, self_.rank));
  }
  void note_waits_on(const wait_board& on) override { self_.waits = on; }
  std::uint64_t in_place() const noexcept override {
    return self_.area.state(self_.rank).in_place.load(std::memory_order_relaxed);
  }
  void describe(core::json_writer& to) const override;

 private:
  std::unique_ptr<transport> join(const subgroup_terms& of);
  void raise_if_impossible(const subgroup_terms& of) const;

  const velo_transport kind_;
  const std::shared_ptr<void> memory_;
  const std::unique_ptr<liveness_watch> watch_;
  const std::shared_ptr<subgroup_rendezvous> subgroups_;
  const std::unique_ptr<peer_mappings> mappings_;
  rank_context self_;
  std::uint64_t shrinks_ = 0;  // attempts
};

}  // namespace velo::comm
