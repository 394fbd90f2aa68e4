// Sending and receiving bytes as tensors of the group's messages.
#include "sched/executor/group_link.hpp"

#include "comm/collective/calls.hpp"
#include "comm/transport/shared/messages/message_heap.hpp"
#include "core/context.hpp"
#include "core/handle/guard.hpp"

namespace velo::sched {

namespace {

// user: the group's handle, so that calls after the end of the group are detected.
comm::group& group_of(void* user) {
  return core::resolve<comm::group>(static_cast<velo_group>(user), "link");
}
comm::caller caller_of(comm::group& of) {
  return {of.owner(), of.rank(), of.size()};
}
void submit(comm::group& of, const comm::message_batch& batch) {
  of.submit(of.owner().inline_stream(), batch);
}

// call: comm::send_call, comm::start_call or comm::receive_call.
template <class Call>
velo_status pass(const char* function, void* user, std::int32_t peer, void* bytes,
                 std::uint64_t size, Call call) {
  return core::guard(function, [&] {
    comm::group& of = group_of(user);
    const auto count = static_cast<std::int64_t>(size);
    velo_tensor all{};
    all.data = bytes;
    all.device = of.owner().device();
    all.ndim = 1;
    all.dtype = {VELO_DTYPE_UINT, 8, 1};
    all.shape = const_cast<std::int64_t*>(&count);
    submit(of, call(caller_of(of), peer, &all));
  });
}

velo_status send(void* user, std::int32_t to, const void* bytes, std::uint64_t size) {
  return pass("velo_link.send", user, to, const_cast<void*>(bytes), size, comm::send_call);
}

velo_status borrow(void* user, std::int32_t from, std::uint64_t size, void** bytes) {
  return core::guard("velo_link.borrow", [&] {
    comm::group& of = group_of(user);
    const comm::message_batch batch =
        comm::borrow_call(caller_of(of), from, static_cast<std::int64_t>(size));
    submit(of, batch);
    *bytes = batch.messages[0].block;
  });
}

bool lives(const void* user) noexcept {
  return core::live_slot(user, core::kinds::group) != nullptr;
}

}  // namespace

const void* group_of_link(const velo_link& link) noexcept {
  return link.send == &send ? link.user : nullptr;
}

velo_link link_over(comm::group& of) {
  velo_link result = VELO_LINK_INIT;
  result.flags = VELO_LINK_WAITS;
  result.user = core::handle_of(of);
  result.send = &send;
  result.receive = [](void* user, int32_t from, void* bytes, uint64_t size) {
    return pass("velo_link.receive", user, from, bytes, size, comm::receive_call);
  };
  result.abort = [](void* user, const char* why) {
    if (lives(user)) group_of(user).abort(why);
  };
  if (!of.starts_messages()) return result;
  result.start_send = [](void* user, int32_t to, const void* bytes, uint64_t size) {
    return pass("velo_link.start_send", user, to, const_cast<void*>(bytes), size, comm::start_call);
  };
  result.finish = [](void* user) {
    return core::guard("velo_link.finish", [&] { submit(group_of(user), comm::finish_call()); });
  };
  result.borrow = &borrow;
  result.give_back = [](void* user, void* bytes) {  // freed together with the group
    if (lives(user)) comm::message_heap::free_block(static_cast<char*>(bytes));
  };
  return result;
}

}  // namespace velo::sched
