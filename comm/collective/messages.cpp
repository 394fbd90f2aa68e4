// Checks of messages: one, or several that move together.
#include "comm/collective/calls.hpp"
#include "core/context.hpp"
#include "core/index.hpp"

namespace velo::comm {
namespace {

message message_of(const caller& by, const velo_tensor* given, std::int32_t peer, bool receives,
                   const char* tensor, const char* rank) {
  const buffer x = buffer_of(by.owner, given, tensor);
  if (peer < 0 || peer >= by.size)
    core::fail(VELO_ERR_ARGUMENT, rank, core::text("0 to %d", by.size - 1), core::text("%d", peer));
  message made;
  made.data = x.data;
  made.bytes = x.bytes();
  made.peer = peer;
  made.receives = receives;
  made.terms.kind = receives ? other_call::receive : other_call::send;
  made.terms.in_code = made.terms.out_code = x.dtype.code;
  made.terms.in_bits = made.terms.out_bits = x.dtype.bits;
  made.terms.count = x.count;
  made.terms.root = static_cast<std::uint16_t>(peer);
  return made;
}

// Sets the bytes of the batch, and marks one whose messages all go to this rank itself.
void describe(message_batch& what, const caller& by) {
  bool is_own = !what.messages.empty();
  for (const message& one : what.messages) {
    what.bytes += one.bytes;
    is_own = is_own && one.peer == by.rank;
  }
  if (is_own) what.terms.counts = terms::of_own_messages;
}

message_batch one_message(const caller& by, const velo_tensor* x, std::int32_t peer,
                          bool receives) {
  message_batch what;
  what.function = receives ? "velo_group_receive" : "velo_group_send";
  what.messages.push_back(message_of(by, x, peer, receives, "x", receives ? "from" : "to"));
  what.terms = what.messages[0].terms;
  describe(what, by);
  return what;
}

bool share_bytes(const message& a, const message& b) {
  return a.bytes > 0 && b.bytes > 0 && a.data < b.data + b.bytes && b.data < a.data + a.bytes;
}

}  // namespace

message_batch send_call(const caller& by, std::int32_t to, const velo_tensor* x) {
  return one_message(by, x, to, false);
}

message_batch receive_call(const caller& by, std::int32_t from, const velo_tensor* x) {
  return one_message(by, x, from, true);
}

message_batch start_call(const caller& by, std::int32_t to, const velo_tensor* x) {
  message_batch what = one_message(by, x, to, false);
  what.awaited = awaited::nothing;
  return what;
}

message_batch finish_call() {
  message_batch what;
  what.function = "velo_link.finish";
  what.terms.kind = other_call::exchange;
  what.awaited = awaited::all;
  return what;
}

message_batch borrow_call(const caller& by, std::int32_t from, std::int64_t bytes) {
  velo_tensor all{};
  all.data = const_cast<std::int64_t*>(&bytes);  // never written: the message is borrowed
  all.device = by.owner.device();
  all.ndim = 1;
  all.dtype = {VELO_DTYPE_UINT, 8, 1};
  all.shape = &bytes;
  message_batch what = one_message(by, &all, from, true);
  what.messages[0].borrows = true;
  return what;
}

message_batch exchange_call(const caller& by, const velo_group_message* messages,
                            std::int64_t count) {
  if (count < 0 || count > most_messages)
    core::fail(VELO_ERR_ARGUMENT, "count", core::text("0 to %d", most_messages),
               core::number(count));
  if (messages == nullptr && count > 0)
    core::fail(VELO_ERR_NULL, "messages", "as many as count says", "NULL");
  message_batch what;
  what.function = "velo_group_exchange";
  what.terms.kind = other_call::exchange;
  what.terms.count = count;
  for (int i = 0; i < count; ++i) {
    const velo_group_message& given = messages[i];
    if (given.direction != VELO_MESSAGE_SEND && given.direction != VELO_MESSAGE_RECEIVE)
      core::fail(VELO_ERR_ARGUMENT, core::text("messages[%d].direction", i), "a VELO_MESSAGE",
                 core::text("%d", given.direction));
    const message made =
        message_of(by, given.x, given.rank, given.direction == VELO_MESSAGE_RECEIVE,
                   core::text("messages[%d].x", i), core::text("messages[%d].rank", i));
    for (int k = 0; k < i; ++k) {
      const message& other = what.messages[core::at(k)];
      if ((made.receives || other.receives) && share_bytes(made, other))
        core::refuse_overlap(core::text("messages[%d].x", i), core::text("messages[%d].x", k),
                             false);
    }
    what.messages.push_back(made);
  }
  describe(what, by);
  return what;
}

}  // namespace velo::comm
