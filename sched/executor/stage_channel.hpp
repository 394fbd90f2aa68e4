// A channel for the messages between stages, over a link.
//
// A message is sent as a header of fixed size, the form if it differs from the previous message of
// that stage and direction, and the bytes of every tensor. The header names stage and unit, so a
// receiver may get a message before it waits for it; a link only has to keep each sender's order.
// The memory of a started send must not change until `finish`: the channel keeps the headers, its
// caller the messages. A received tensor is in memory borrowed from the link, or else in memory of
// the context. Cost beside the link's: a header of 24 bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "core/host/memory.hpp"
#include "sched/executor/message.hpp"
#include "velo/executor.h"

namespace velo::sched {

enum class direction : std::int32_t { forward, backward };

struct message_tag {
  direction toward;
  std::int32_t stage;  // the stage that made the message
  std::int32_t unit;
  // The forward did not run: its input is void, or the optimizer step before it is not validated.
  bool is_void = false;
};

class stage_channel {
 public:
  // starts: sends proceed in the background until `finish`.
  stage_channel(const velo_link& link, bool starts, core::memory_source& memory);
  ~stage_channel();
  stage_channel(const stage_channel&) = delete;
  stage_channel& operator=(const stage_channel&) = delete;

  const velo_link& link() const { return link_; }
  bool starts() const { return starts_; }
  // body: null for a message without tensors, such as a void one.
  void send(std::int32_t to, const message_tag& of, const message* body);
  void finish();
  message_tag receive(std::int32_t from,
                      message_ptr& into);  // `give_back` returns its memory
  void give_back(message& body) noexcept;

  // Plain bytes, whose number both sides know. They throw the failure that the link recorded.
  void send_bytes(std::int32_t to, const void* bytes, std::uint64_t size);
  void receive_bytes(std::int32_t from, void* bytes, std::uint64_t size);
  void abort(const char* why) noexcept;

 private:
  struct header;
  using stream_key = std::pair<std::int32_t, std::int32_t>;  // direction, stage

  void pass(std::int32_t to, const void* bytes, std::uint64_t size);
  void receive_form(std::int32_t from, const header& of, std::shared_ptr<const form>& into);
  void receive_tensor(std::int32_t from, message& into, std::size_t i);
  void* borrow(std::int32_t from, std::uint64_t size);

  const velo_link link_;
  const bool starts_;
  core::memory_source& memory_;
  std::deque<header> under_way_;  // headers of started sends
  std::map<stream_key, std::shared_ptr<const form>> sent_, received_;
};

}  // namespace velo::sched
