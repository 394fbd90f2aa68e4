// Bytes as tensors of the group's messages.
#include "sched/group_link.hpp"

#include "comm/collective/calls.hpp"
#include "core/context.hpp"
#include "core/guard.hpp"

namespace velo::sched {

namespace {

// call: comm::send_call or comm::receive_call.
template <class Call>
velo_status pass(const char* function, void* group, std::int32_t peer, void* bytes,
                 std::uint64_t size, Call call) {
  return core::guard(function, [&] {
    auto& of = *static_cast<comm::group*>(group);
    const auto count = static_cast<std::int64_t>(size);
    velo_tensor all{};
    all.data = bytes;
    all.device = of.owner().device();
    all.ndim = 1;
    all.dtype = {VELO_DTYPE_UINT, 8, 1};
    all.shape = const_cast<std::int64_t*>(&count);
    of.submit(of.owner().inline_stream(), call({of.owner(), of.rank(), of.size()}, peer, &all));
  });
}

}  // namespace

velo_link link_over(comm::group& of) {
  velo_link made = VELO_LINK_INIT;
  made.flags = VELO_LINK_WAITS;
  made.user = &of;
  made.send = [](void* user, int32_t to, const void* bytes, uint64_t size) {
    return pass("velo_link.send", user, to, const_cast<void*>(bytes), size, comm::send_call);
  };
  made.receive = [](void* user, int32_t from, void* bytes, uint64_t size) {
    return pass("velo_link.receive", user, from, bytes, size, comm::receive_call);
  };
  made.abort = [](void* user, const char* why) { static_cast<comm::group*>(user)->abort(why); };
  return made;
}

}  // namespace velo::sched
