// Parcels carried over a link.
//
// A message is a header of fixed size, then the form where it is not that of the message before of
// the same stage and direction, then every tensor's bytes. The header says what it belongs to, so
// that a receiver may be given what it did not wait for yet: links need no more than to keep each
// sender's order. What a send that was started reads must not change until `finish`: the courier
// keeps the headers, its caller the parcels. A received tensor lies where the link lends it, else
// in memory of the context. Cost beside the link's: a header of 24 bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "core/host/memory.hpp"
#include "sched/executor/parcel.hpp"
#include "velo/executor.h"

namespace velo::sched {

enum class direction : std::int32_t { forward, backward };

struct label {
  direction way;
  std::int32_t stage;  // who made it
  std::int32_t unit;
  bool is_void = false;  // not made, as what it needs is not there
};

class courier {
 public:
  // starts: sends go on while others are sent and received, until `finish`.
  courier(const velo_link& link, bool starts, core::memory_source& memory);
  ~courier();
  courier(const courier&) = delete;
  courier& operator=(const courier&) = delete;

  const velo_link& link() const { return link_; }
  bool starts() const { return starts_; }
  // what: may be null, which is a message without tensors, as it is where `of` is void.
  void send(std::int32_t to, const label& of, const parcel* what);
  void finish();
  label receive(std::int32_t from, parcel_ptr& into);  // memory: to be given back by `give_back`
  void give_back(parcel& what) noexcept;

  // Plain bytes, of which the other side knows how many. Throw what the link left in the record.
  void send_bytes(std::int32_t to, const void* bytes, std::uint64_t size);
  void receive_bytes(std::int32_t from, void* bytes, std::uint64_t size);
  void abort(const char* why) noexcept;

 private:
  struct header;
  using lane = std::pair<std::int32_t, std::int32_t>;  // direction, stage

  void pass(std::int32_t to, const void* bytes, std::uint64_t size);
  void receive_form(std::int32_t from, const header& of, std::shared_ptr<const form>& into);
  void receive_tensor(std::int32_t from, parcel& into, std::size_t i);
  void* borrow(std::int32_t from, std::uint64_t size);

  const velo_link link_;
  const bool starts_;
  core::memory_source& memory_;
  std::deque<header> under_way_;  // of what was started
  std::map<lane, std::shared_ptr<const form>> sent_, received_;
};

}  // namespace velo::sched
