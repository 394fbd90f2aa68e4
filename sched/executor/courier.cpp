// The form of messages.
#include "sched/executor/courier.hpp"

#include "core/handle/host_call.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

constexpr std::uint32_t magic = 0x6f6c6576;  // velo
constexpr std::uintptr_t lent_alignment = 64;
enum class told : std::uint32_t { nothing, no_tensors, same_form, new_form };

// A failure that a function of the link recorded.
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

// Of a function of the link. As core::call_host, without a second `uncancelled` (10 ns a call): the
// entry holds one. peer: the rank at the other end, -1 = of all of them.
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

struct courier::header {
  std::uint32_t mark;
  told what;
  direction way;
  std::int32_t stage, unit;
  std::uint32_t tensors;
};

courier::courier(const velo_link& link, bool starts, core::memory_source& memory)
    : link_(link), starts_(starts), memory_(memory) {}
courier::~courier() = default;

void courier::send_bytes(std::int32_t to, const void* bytes, std::uint64_t size) {
  call_link("send", to, [&] { return link_.send(link_.user, to, bytes, size); });
}

void courier::receive_bytes(std::int32_t from, void* bytes, std::uint64_t size) {
  call_link("receive", from, [&] { return link_.receive(link_.user, from, bytes, size); });
}

// As part of a message.
void courier::pass(std::int32_t to, const void* bytes, std::uint64_t size) {
  if (!starts_) return send_bytes(to, bytes, size);
  call_link("start_send", to, [&] { return link_.start_send(link_.user, to, bytes, size); });
}

void courier::finish() {
  call_link("finish", -1, [&] { return link_.finish(link_.user); });
  under_way_.clear();
}

// nullptr: it is to be received.
void* courier::borrow(std::int32_t from, std::uint64_t size) {
  if (link_.borrow == nullptr) return nullptr;
  void* bytes = nullptr;
  call_link("borrow", from, [&] { return link_.borrow(link_.user, from, size, &bytes); });
  return bytes;
}

void courier::abort(const char* why) noexcept {
  if (link_.abort == nullptr) return;
  try {
    link_.abort(link_.user, why);
  } catch (...) {  // the first failure is the one that is told
  }
}

void courier::send(std::int32_t to, const label& of, const parcel* what) {
  header h{magic, of.is_void ? told::nothing : told::no_tensors, of.way, of.stage, of.unit, 0};
  std::shared_ptr<const form>* last = nullptr;
  if (what != nullptr) {
    last = &sent_[{static_cast<std::int32_t>(of.way), of.stage}];
    h.what = *last != nullptr && same(**last, *what->what) ? told::same_form : told::new_form;
    h.tensors = static_cast<std::uint32_t>(what->what->size());
  }
  pass(to, starts_ ? &under_way_.emplace_back(h) : &h, sizeof h);
  if (what == nullptr) return;
  if (h.what == told::new_form) {
    *last = what->what;
    pass(to, (*last)->data(), (*last)->size() * sizeof(tensor_form));
  }
  for (std::size_t i = 0; i < what->tensors.size(); ++i) {
    const velo_tensor& from = what->tensors[i];
    const std::uint64_t bytes = bytes_of((*what->what)[i]);
    if (bytes > 0) pass(to, static_cast<const unsigned char*>(from.data) + from.byte_offset, bytes);
  }
}

void courier::receive_form(std::int32_t from, const header& of, std::shared_ptr<const form>& into) {
  if (of.what == told::new_form) {
    auto made = std::make_shared<form>(of.tensors);
    receive_bytes(from, made->data(), made->size() * sizeof(tensor_form));
    into = std::move(made);
  }
  if (into == nullptr || into->size() != of.tensors)
    fail(VELO_ERR_PEER, "link", "sizes before the first tensors", text("none from rank %d", from));
}

label courier::receive(std::int32_t from, parcel_ptr& into) {
  header h{};
  receive_bytes(from, &h, sizeof h);
  if (h.mark != magic || h.what > told::new_form || h.tensors > VELO_EXECUTOR_TENSORS ||
      (h.way != direction::forward && h.way != direction::backward))
    fail(VELO_ERR_PEER, "link", "a message of an executor", text("another from rank %d", from));
  const label of{h.way, h.stage, h.unit, h.what == told::nothing};
  into = nullptr;
  if (h.what < told::same_form) return of;
  std::shared_ptr<const form>& last = received_[{static_cast<std::int32_t>(h.way), h.stage}];
  receive_form(from, h, last);
  into = empty_parcel(last);  // its memory is the caller's, also when what follows fails
  for (std::size_t i = 0; i < into->tensors.size(); ++i) receive_tensor(from, *into, i);
  return of;
}

// Where the link has it, or in memory of its own.
void courier::receive_tensor(std::int32_t from, parcel& into, std::size_t i) {
  const std::uint64_t bytes = bytes_of((*into.what)[i]);
  if (bytes == 0) return;
  if (void* const lent = borrow(from, bytes); lent != nullptr) {
    into.tensors[i].data = lent;
    into.lent |= std::uint32_t{1} << i;  // from here on it is given back, whatever follows
    if (reinterpret_cast<std::uintptr_t>(lent) % lent_alignment != 0)
      fail(VELO_ERR_FOREIGN, "link.borrow", "memory aligned to 64 bytes", text("%p", lent));
    return;
  }
  into.tensors[i].data = memory_.take(bytes);
  into.owned |= std::uint32_t{1} << i;
  receive_bytes(from, into.tensors[i].data, bytes);
}

void courier::give_back(parcel& what) noexcept {
  for (std::size_t i = 0; what.owned >> i != 0; ++i)
    if ((what.owned >> i & 1) != 0) memory_.give(what.tensors[i].data, bytes_of((*what.what)[i]));
  what.owned = 0;
  for (std::size_t i = 0; what.lent >> i != 0; ++i) {
    if ((what.lent >> i & 1) == 0) continue;
    try {
      link_.give_back(link_.user, what.tensors[i].data);
    } catch (...) {  // nobody to tell
    }
  }
  what.lent = 0;
}

}  // namespace velo::sched
