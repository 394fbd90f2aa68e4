// The transport of ranks that share memory, whoever owns that memory: the engine of `local` and
// `shm`.
#pragma once

#include <functional>
#include <memory>

#include "comm/transport/shared/meeting.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

// Where ranks meet for a part of their group.
class hall {
 public:
  virtual ~hall() = default;
  // glance: throws when there is no hope for the part. Throws not_there, what glance throws,
  // MEMORY, IO.
  virtual std::unique_ptr<transport> meet(const part_terms& of,
                                          const std::function<void()>& glance) = 0;
};

class shared_transport final : public transport {
 public:
  struct setting {
    velo_transport kind;
    int rank;
    std::int64_t timeout_ns;
    outside* beside = nullptr;
  };
  // memory: keeps the area mapped. watch, lent: may be nullptr.
  shared_transport(const setting& set, const shared_area& area, std::shared_ptr<void> memory,
                   std::unique_ptr<peer_watch> watch, std::shared_ptr<hall> parts,
                   std::unique_ptr<windows> lent = nullptr);
  ~shared_transport() override;

  velo_transport kind() const noexcept override { return kind_; }
  int rank() const noexcept override { return at_.rank; }
  int size() const noexcept override { return at_.area.ranks(); }

  void run(const operation& what, core::execution& state) override;
  void explain(const operation& what, explanation& to) const override;
  bool starts_messages() const noexcept override { return true; }
  std::int64_t relay_room() const noexcept override {
    return static_cast<std::int64_t>(at_.area.relay_bytes());
  }
  std::unique_ptr<relay> begin_relay(const operation& what, core::execution& state) override;
  void conclude() override;
  void settle() noexcept override;
  void fail(const fault& why) noexcept override { at_.area.note(at_.rank, why); }
  bool has_failed() const noexcept override { return at_.area.is_noted(); }
  bool failed(fault& why) const noexcept override { return at_.area.noted(at_.rank, why); }
  std::unique_ptr<transport> part(const part_terms& of) override;
  std::unique_ptr<transport> shrink(const part_terms& of) override;
  std::uint64_t in_place() const noexcept override {
    return at_.area.state(at_.rank).in_place.load(std::memory_order_relaxed);
  }
  void describe(std::string& json) const override;

 private:
  std::unique_ptr<transport> meet(const part_terms& of);
  void raise_if_hopeless(const part_terms& of) const;

  const velo_transport kind_;
  const std::shared_ptr<void> memory_;
  const std::unique_ptr<peer_watch> watch_;
  const std::shared_ptr<hall> parts_;
  const std::unique_ptr<windows> lent_;
  place at_;
  std::uint64_t shrinks_ = 0;  // attempts
};

}  // namespace velo::comm
