// The rows of groups: reductions of the host, and a host's own collectives, between two ranks.
#include <thread>

#include "tests/comm/transport/host/fake_host.hpp"
#include "tests/faults/inside_parts.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {
namespace {

// While a call of a group is carried out, what waits for work of its context as it ends is kept,
// too.
const std::set<std::string> in_a_call = {"velo_context", "velo_group", "velo_stream", "velo_swap"};

constexpr std::int64_t short_deadline = 100000000;  // for a word to a rank that is in no call
float from[2][64] = {}, to[2][64] = {};
const std::int64_t all[] = {64}, half[] = {32};

// The second rank's function does not meddle.
velo_reduction sum_of(int rank) {
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = VELO_REDUCE_CUSTOM;
  how.user = rank == 0 ? &how : nullptr;
  how.fn = [](void* user, const void* next, void* total, std::int64_t count, const velo_dtype*) {
    if (user != nullptr) meddle();
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<float*>(total)[i] += static_cast<const float*>(next)[i];
  };
  return how;
}
velo_status reduce(velo_stream on, velo_group group, int rank) {
  const velo_reduction how = sum_of(rank);
  const velo_tensor x = view_of(from[rank], f32, all);
  return velo_group_all_reduce(on, group, &how, &x, &x);
}
velo_status reduce_inline(scene& s) {
  open_local_groups(s);
  must(reduce(s.peer_queue, s.groups[1], 1));
  return reduce(s.now, s.groups[0], 0);
}
velo_status reduce_queued(scene& s) {
  open_local_groups(s);
  must(reduce(s.peer_queue, s.groups[1], 1));
  must(reduce(s.queue, s.groups[0], 0));
  return velo_stream_synchronize(s.queue);
}
velo_status reduce_planned(scene& s) {
  open_local_groups(s);
  const velo_reduction how = sum_of(0);
  const velo_tensor x = view_of(from[0], f32, all);
  velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
  desc.kind = VELO_COLLECTIVE_ALL_REDUCE;
  desc.reduction = &how;
  desc.in = desc.out = &x;
  must(velo_collective_create(s.groups[0], &desc, &s.collective));
  must(reduce(s.peer_queue, s.groups[1], 1));
  return velo_collective_start(s.now, s.collective);
}

// Two ranks over a host with these functions; `call` as each of them makes it.
fake_host* host = nullptr;

using rank_call = velo_status (*)(velo_stream, velo_group, int rank);

velo_status create(velo_context context, int rank, const velo_host_collectives& table,
                   std::int64_t timeout_ns, velo_group& made) {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.transport = VELO_TRANSPORT_HOST;
  desc.rank = rank;
  desc.size = 2;
  desc.timeout_ns = timeout_ns;
  desc.host = &table;
  return velo_group_create(context, &desc, &made);
}

template <class Change, class Call>
velo_status over_host(scene& s, const char* functions, Change&& change, Call&& call,
                      rank_call peer_call, std::int64_t timeout_ns = deadline) {
  open_peer(s);
  fake_host with(2, functions);
  host = &with;
  velo_host_collectives table = with.table(0);
  change(table);
  const auto held = std::move(meddling);  // until the group is there
  meddling = nullptr;
  std::thread second([&] {
    velo_group group = nullptr;
    velo_stream now = nullptr;
    must(create(s.peer, 1, with.table(1), timeout_ns, group));
    must(velo_context_stream(s.peer, &now));
    if (peer_call != nullptr) peer_call(now, group, 1);
    s.groups[1] = group;
  });
  const velo_status created = create(s.context, 0, table, timeout_ns, s.groups[0]);
  meddling = held;
  const velo_status status = created == VELO_OK ? call(s.groups[0]) : created;
  second.join();
  velo_group_destroy(s.groups[0]);  // before the host goes
  velo_group_destroy(s.groups[1]);
  with.await_released(2);
  host = nullptr;
  return status;
}

// function: the host's, in which the first rank meddles.
template <rank_call Call>
velo_status by_host(scene& s, const char* functions, const char* function) {
  return over_host(
      s, functions,
      [&](velo_host_collectives&) {
        host->inject(0, [function](const char* name, int) -> fake_host::answer {
          if (std::string(name) == function) meddle();
          return {};
        });
      },
      [&](velo_group group) { return Call(s.now, group, 0); }, Call);
}

velo_status gather(velo_stream on, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, half), out = view_of(to[rank], f32, all);
  return velo_group_all_gather(on, group, &in, &out);
}
velo_status trade(velo_stream on, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, all), out = view_of(to[rank], f32, all);
  return velo_group_all_to_all(on, group, &in, &out);
}
velo_status spread(velo_stream on, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, all);
  return velo_group_broadcast(on, group, 0, &x);
}
velo_status sum(velo_stream on, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, all);
  return velo_group_all_reduce(on, group, nullptr, &x, &x);
}
velo_status send(velo_stream on, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, all);
  return rank == 0 ? velo_group_send(on, group, 1, &x) : velo_group_receive(on, group, 0, &x);
}
velo_status receive(velo_stream on, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, all);
  return rank == 1 ? velo_group_send(on, group, 0, &x) : velo_group_receive(on, group, 1, &x);
}
velo_status part(velo_stream, velo_group group, int) {
  const std::int32_t both[] = {0, 1};
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.timeout_ns = deadline;
  velo_group made = nullptr;
  const velo_status status = velo_group_create_part(group, both, 2, &desc, &made);
  velo_group_destroy(made);
  return status;
}

// Wrapped, as the fake host tells of neither. The host's own runs behind.
void (*own_abort)(void*, const char*) = nullptr;
void (*own_release)(void*) = nullptr;

velo_status abort(scene& s) {
  return over_host(
      s, "gather abort",
      [](velo_host_collectives& table) {
        own_abort = table.abort;
        table.abort = [](void* user, const char* why) {
          meddle();
          own_abort(user, why);
        };
      },
      [](velo_group group) {
        const velo_status status = velo_group_abort(group);
        while (host->aborted() == 0) std::this_thread::yield();
        return status;
      },
      nullptr, short_deadline);
}
velo_status release(scene& s) {
  return over_host(
      s, "gather",
      [](velo_host_collectives& table) {
        own_release = table.release;
        table.release = [](void* user) {
          meddle();
          own_release(user);
        };
      },
      [](velo_group group) -> velo_status {
        velo_group_destroy(group);
        return VELO_OK;
      },
      nullptr);
}

}  // namespace

void open_peer(scene& s) {
  must(velo_context_create(nullptr, &s.peer));
  must(velo_stream_create(s.peer, &s.peer_queue));
  velo_group_destroy(s.groups[0]);
}
void open_local_groups(scene& s) {
  open_peer(s);
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.timeout_ns = deadline;
  const velo_context both[] = {s.context, s.peer};
  must(velo_group_create_local(both, 2, &desc, s.groups));
}

std::vector<inside_row> comm_inside_rows() {
  const std::set<std::string> given = {"velo_context", "velo_group"};
  return {
      {"velo_reduce_fn", "inline", in_a_call, reduce_inline},
      {"velo_reduce_fn", "queued", in_a_call, reduce_queued},
      {"velo_reduce_fn", "planned", with(in_a_call, {"velo_collective"}), reduce_planned},
      {"velo_host_all_gather_fn", "of a group", in_a_call,
       [](scene& s) { return by_host<gather>(s, "gather", "all_gather"); }},
      {"velo_host_all_to_all_fn", "of a group", in_a_call,
       [](scene& s) { return by_host<trade>(s, "to_all", "all_to_all"); }},
      {"velo_host_broadcast_fn", "of a group", in_a_call,
       [](scene& s) { return by_host<spread>(s, "broadcast", "broadcast"); }},
      {"velo_host_all_reduce_fn", "of a group", in_a_call,
       [](scene& s) { return by_host<sum>(s, "gather reduce", "all_reduce"); }},
      {"velo_host_send_fn", "of a group", in_a_call,
       [](scene& s) { return by_host<send>(s, "messages", "send"); }},
      {"velo_host_receive_fn", "of a group", in_a_call,
       [](scene& s) { return by_host<receive>(s, "messages", "receive"); }},
      {"velo_host_part_fn", "of a group", given,
       [](scene& s) { return by_host<part>(s, "gather part", "part"); }},
      {"velo_host_abort_fn", "of a group", given, abort},
      {"velo_host_release_fn", "of a group", {"velo_context"}, release},
  };
}

}  // namespace velo::testing
