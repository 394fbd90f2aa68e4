// The form of messages.
#include "sched/courier.hpp"

#include "core/host_call.hpp"
#include "core/record.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

constexpr std::uint32_t magic = 0x6f6c6576;  // velo
enum class told : std::uint32_t { nothing, no_tensors, same_form, new_form };

// What a function of the link returned: the failure that it recorded, or a new one.
void require_done(velo_status status, const char* function) {
  if (status == VELO_OK) return;
  const velo_error_info& known = core::last_record();
  if (known.code != status)
    fail(VELO_ERR_FOREIGN, text("link.%s", function), "VELO_OK", text("%d", status));
  core::failure same;
  same.code = status;
  same.rank = known.rank;
  core::copy_text(same.argument, sizeof same.argument, known.argument);
  core::copy_text(same.expected, sizeof same.expected, known.expected);
  core::copy_text(same.got, sizeof same.got, known.got);
  core::copy_text(same.cause, sizeof same.cause, known.cause);
  throw same;
}

}  // namespace

struct courier::header {
  std::uint32_t mark;
  told what;
  direction way;
  std::int32_t stage, unit;
  std::uint32_t tensors;
};

void courier::send_bytes(std::int32_t to, const void* bytes, std::uint64_t size) {
  try {
    require_done(link_.send(link_.user, to, bytes, size), "send");
  } catch (const core::failure&) {
    throw;
  } catch (...) {
    core::fail_foreign("link.send", "the host");
  }
}

void courier::receive_bytes(std::int32_t from, void* bytes, std::uint64_t size) {
  try {
    require_done(link_.receive(link_.user, from, bytes, size), "receive");
  } catch (const core::failure&) {
    throw;
  } catch (...) {
    core::fail_foreign("link.receive", "the host");
  }
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
  if (what == nullptr) return send_bytes(to, &h, sizeof h);
  std::shared_ptr<const form>& last = sent_[{static_cast<std::int32_t>(of.way), of.stage}];
  h.what = last != nullptr && same(*last, *what->what) ? told::same_form : told::new_form;
  h.tensors = static_cast<std::uint32_t>(what->what->size());
  send_bytes(to, &h, sizeof h);
  if (h.what == told::new_form) {
    last = what->what;
    send_bytes(to, last->data(), last->size() * sizeof(tensor_form));
  }
  for (std::size_t i = 0; i < what->tensors.size(); ++i) {
    const velo_tensor& from = what->tensors[i];
    const std::uint64_t bytes = bytes_of((*what->what)[i]);
    if (bytes > 0)
      send_bytes(to, static_cast<const unsigned char*>(from.data) + from.byte_offset, bytes);
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
  parcel_ptr made = empty_parcel(last);
  place(*made, memory_.take(made->bytes == 0 ? 1 : made->bytes));
  into = std::move(made);  // its memory is the caller's from here on, also when what follows fails
  for (std::size_t i = 0; i < into->tensors.size(); ++i) {
    const std::uint64_t bytes = bytes_of((*last)[i]);
    if (bytes > 0) receive_bytes(from, into->tensors[i].data, bytes);
  }
  return of;
}

void courier::give_back(parcel& what) noexcept {
  if (what.memory == nullptr) return;
  memory_.give(what.memory, what.bytes == 0 ? 1 : what.bytes);
  what.memory = nullptr;
}

}  // namespace velo::sched
