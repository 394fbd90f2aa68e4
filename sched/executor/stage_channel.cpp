// Sending and receiving the parts of a message: header, form, tensors.
#include "sched/executor/stage_channel.hpp"

#include "core/handle/host_call.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

constexpr std::uint32_t magic = 0x6f6c6576;  // velo
constexpr std::uintptr_t borrow_alignment = 64;
enum class contents : std::uint32_t { nothing, no_tensors, same_form, new_form };

// Throws the failure that a function of the link recorded.
[[noreturn]] void pass_on(const velo_error_info& known) {
  core::failure same;
  same.code = known.code;
  same.rank = known.rank;
  core::copy_text(same.argument, sizeof same.argument, known.argument);
  core::copy_text(same.expected, sizeof same.expected, known.expected);
  core::copy_text(same.got, sizeof same.got, known.got);
  core::copy_text(same.cause, sizeof same.cause, known.cause);
  throw same;
}

// Calls a function of the link as core::call_host does, but without a second `uncancelled` scope
// (10 ns a call), which the entry already holds. peer: the rank at the other end; -1: all ranks.
template <class Call>
void call_link(const char* function, std::int32_t peer, Call&& call) {
  const std::uint32_t before = core::records_written();
  velo_status status = VELO_OK;
  try {
    status = call();
  } catch (...) {
    core::fail_foreign(text("link.%s", function), "the host");
  }
  if (status == VELO_OK) return;
  if (const velo_error_info* left = core::record_left(status, before)) pass_on(*left);
  core::fail_returned(text("link.%s", function), status,
                      peer < 0 ? text("the link") : text("the link to rank %d", peer), before);
}

}  // namespace

struct stage_channel::header {
  std::uint32_t mark;
  contents holds;
  direction toward;
  std::int32_t stage, unit;
  std::uint32_t tensor_count;
};

stage_channel::stage_channel(const velo_link& link, bool starts, core::memory_source& memory)
    : link_(link), starts_(starts), memory_(memory) {}
stage_channel::~stage_channel() = default;

void stage_channel::send_bytes(std::int32_t to, const void* bytes, std::uint64_t size) {
  call_link("send", to, [&] { return link_.send(link_.user, to, bytes, size); });
}

void stage_channel::receive_bytes(std::int32_t from, void* bytes, std::uint64_t size) {
  call_link("receive", from, [&] { return link_.receive(link_.user, from, bytes, size); });
}

// Sends a part of a message.
void stage_channel::pass(std::int32_t to, const void* bytes, std::uint64_t size) {
  if (!starts_) return send_bytes(to, bytes, size);
  call_link("start_send", to, [&] { return link_.start_send(link_.user, to, bytes, size); });
}

void stage_channel::finish() {
  call_link("finish", -1, [&] { return link_.finish(link_.user); });
  under_way_.clear();
}

// Returns nullptr if the bytes must be received by copy.
void* stage_channel::borrow(std::int32_t from, std::uint64_t size) {
  if (link_.borrow == nullptr) return nullptr;
  void* bytes = nullptr;
  call_link("borrow", from, [&] { return link_.borrow(link_.user, from, size, &bytes); });
  return bytes;
}

void stage_channel::abort(const char* why) noexcept {
  if (link_.abort == nullptr) return;
  try {
    link_.abort(link_.user, why);
  } catch (...) {  // only the first failure is reported
  }
}

void stage_channel::send(std::int32_t to, const message_tag& of, const message* body) {
  header h{magic,     of.is_void ? contents::nothing : contents::no_tensors,
           of.toward, of.stage,
           of.unit,   0};
  std::shared_ptr<const form>* last = nullptr;
  if (body != nullptr) {
    last = &sent_[{static_cast<std::int32_t>(of.toward), of.stage}];
    h.holds = *last != nullptr && same(**last, *body->common_form) ? contents::same_form
                                                                   : contents::new_form;
    h.tensor_count = static_cast<std::uint32_t>(body->common_form->size());
  }
  pass(to, starts_ ? &under_way_.emplace_back(h) : &h, sizeof h);
  if (body == nullptr) return;
  if (h.holds == contents::new_form) {
    *last = body->common_form;
    pass(to, (*last)->data(), (*last)->size() * sizeof(tensor_form));
  }
  for (std::size_t i = 0; i < body->tensors.size(); ++i) {
    const velo_tensor& from = body->tensors[i];
    const std::uint64_t bytes = form_bytes((*body->common_form)[i]);
    if (bytes > 0) pass(to, static_cast<const unsigned char*>(from.data) + from.byte_offset, bytes);
  }
}

void stage_channel::receive_form(std::int32_t from, const header& of,
                                 std::shared_ptr<const form>& into) {
  if (of.holds == contents::new_form) {
    auto result = std::make_shared<form>(of.tensor_count);
    receive_bytes(from, result->data(), result->size() * sizeof(tensor_form));
    into = std::move(result);
  }
  if (into == nullptr || into->size() != of.tensor_count)
    fail(VELO_ERR_PEER, "link", "sizes before the first tensors", text("none from rank %d", from));
}

message_tag stage_channel::receive(std::int32_t from, message_ptr& into) {
  header h{};
  receive_bytes(from, &h, sizeof h);
  if (h.mark != magic || h.holds > contents::new_form || h.tensor_count > VELO_EXECUTOR_TENSORS ||
      (h.toward != direction::forward && h.toward != direction::backward))
    fail(VELO_ERR_PEER, "link", "a message of an executor", text("another from rank %d", from));
  const message_tag of{h.toward, h.stage, h.unit, h.holds == contents::nothing};
  into = nullptr;
  if (h.holds < contents::same_form) return of;
  std::shared_ptr<const form>& last = received_[{static_cast<std::int32_t>(h.toward), h.stage}];
  receive_form(from, h, last);
  into = empty_message(last);  // the caller returns its memory, also after a failure below
  for (std::size_t i = 0; i < into->tensors.size(); ++i) receive_tensor(from, *into, i);
  return of;
}

// Receives a tensor into memory borrowed from the link, or into memory of its own.
void stage_channel::receive_tensor(std::int32_t from, message& into, std::size_t i) {
  const std::uint64_t bytes = form_bytes((*into.common_form)[i]);
  if (bytes == 0) return;
  if (void* const borrowed = borrow(from, bytes); borrowed != nullptr) {
    into.tensors[i].data = borrowed;
    // Set first, so that it is returned even if the next check fails.
    into.borrowed |= std::uint32_t{1} << i;
    if (reinterpret_cast<std::uintptr_t>(borrowed) % borrow_alignment != 0)
      fail(VELO_ERR_FOREIGN, "link.borrow", "memory aligned to 64 bytes", text("%p", borrowed));
    return;
  }
  into.tensors[i].data = memory_.take(bytes);
  into.owned |= std::uint32_t{1} << i;
  receive_bytes(from, into.tensors[i].data, bytes);
}

void stage_channel::give_back(message& body) noexcept {
  for (std::size_t i = 0; body.owned >> i != 0; ++i)
    if ((body.owned >> i & 1) != 0)
      memory_.give(body.tensors[i].data, form_bytes((*body.common_form)[i]));
  body.owned = 0;
  for (std::size_t i = 0; body.borrowed >> i != 0; ++i) {
    if ((body.borrowed >> i & 1) == 0) continue;
    try {
      link_.give_back(link_.user, body.tensors[i].data);
    } catch (...) {  // no caller is left to receive it
    }
  }
  body.borrowed = 0;
}

}  // namespace velo::sched
