// The rows of groups: of one rank, and of two, the second of which calls first, on a queue.
#include <unistd.h>

#include <cstdio>

#include "tests/calls/rows.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {
namespace {

float from[2][300] = {}, to[2][300] = {}, rows_to[450] = {};
const std::int64_t most[] = {300}, half[] = {150};
const std::int64_t counts[2] = {150, 150};

velo_status create_one(world& w) {
  return velo_group_create(w.context, nullptr, &w.groups[0]);
}
void open_one(world& w) {
  w.open();
  must(create_one(w));
}
// By way of a rendezvous, at which nobody else is awaited. The programs of this folder run at the
// same time, so the name carries the process.
velo_status create_met(world& w) {
  char name[32];
  std::snprintf(name, sizeof name, "faults-%d", static_cast<int>(getpid()));
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.transport = VELO_TRANSPORT_SHM;
  desc.name = name;
  desc.rank = 0;
  desc.size = 1;
  return velo_group_create(w.context, &desc, &w.groups[0]);
}
velo_status create_two(world& w) {
  const velo_context both[] = {w.context, w.peer};
  return velo_group_create_local(both, 2, nullptr, w.groups);
}
void open_peer(world& w) {
  w.open();
  const velo_context_desc desc = context_desc(1, w.allocator());
  must(velo_context_create(&desc, &w.peer));
  must(velo_stream_create(w.peer, &w.peer_queue));
}
void open_two(world& w) {
  open_peer(w);
  must(create_two(w));
}

// A collective as each of the two ranks calls it.
using collective = velo_status (*)(velo_stream, velo_group, int rank);

template <collective Call>
void open_for(world& w) {
  open_two(w);
  must(Call(w.peer_queue, w.groups[1], 1));
}
template <collective Call>
velo_status first(world& w) {
  return Call(w.now, w.groups[0], 0);
}

template <collective Call>
call_row row_of(const char* name, bool is_slow = false) {
  return {name, open_for<Call>, first<Call>, nullptr, is_slow};
}

velo_status measure(velo_stream stream, velo_group group, int) {
  return velo_group_measure(stream, group);
}
velo_status barrier(velo_stream stream, velo_group group, int) {
  return velo_group_barrier(stream, group);
}
velo_status all_reduce(velo_stream stream, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, most);
  return velo_group_all_reduce(stream, group, nullptr, &x, &x);
}
velo_status reduce(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, most);
  return velo_group_reduce(stream, group, 0, nullptr, &in, &out);
}
velo_status broadcast(velo_stream stream, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, most);
  return velo_group_broadcast(stream, group, 1, &x);
}
velo_status all_gather(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, half), out = view_of(to[rank], f32, most);
  return velo_group_all_gather(stream, group, &in, &out);
}
velo_status all_gather_v(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, half), out = view_of(to[rank], f32, most);
  return velo_group_all_gather_v(stream, group, &in, counts, nullptr, &out);
}
velo_status reduce_scatter(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, half);
  return velo_group_reduce_scatter(stream, group, nullptr, &in, &out);
}
velo_status reduce_scatter_v(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, half);
  return velo_group_reduce_scatter_v(stream, group, nullptr, &in, counts, &out);
}
velo_status all_to_all(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, most);
  return velo_group_all_to_all(stream, group, &in, &out);
}
velo_status all_to_all_v(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, most);
  return velo_group_all_to_all_v(stream, group, &in, counts, nullptr, counts, nullptr, &out);
}
velo_status gather(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, half), out = view_of(to[rank], f32, most);
  return velo_group_gather(stream, group, 0, &in, &out);
}
velo_status gather_v(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, half), out = view_of(to[rank], f32, most);
  return velo_group_gather_v(stream, group, 0, &in, counts, nullptr, &out);
}
velo_status scatter(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, half);
  return velo_group_scatter(stream, group, 1, &in, &out);
}
velo_status scatter_v(velo_stream stream, velo_group group, int rank) {
  const velo_tensor in = view_of(from[rank], f32, most), out = view_of(to[rank], f32, half);
  return velo_group_scatter_v(stream, group, 1, &in, counts, nullptr, &out);
}

velo_status sent(velo_stream stream, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, most);
  return rank == 0 ? velo_group_send(stream, group, 1, &x)
                   : velo_group_receive(stream, group, 0, &x);
}
velo_status received(velo_stream stream, velo_group group, int rank) {
  const velo_tensor x = view_of(from[rank], f32, most);
  return rank == 0 ? velo_group_receive(stream, group, 1, &x)
                   : velo_group_send(stream, group, 0, &x);
}
velo_status exchange(velo_stream stream, velo_group group, int rank) {
  const velo_tensor mine = view_of(from[rank], f32, most), theirs = view_of(to[rank], f32, most);
  const velo_group_message both[] = {{&mine, 1 - rank, VELO_MESSAGE_SEND},
                                     {&theirs, 1 - rank, VELO_MESSAGE_RECEIVE}};
  return velo_group_exchange(stream, group, both, 2);
}

// With one rank: its memory is taken while others would wait, who then cannot go on.
velo_status dispatch(world& w) {
  static std::int32_t itself[] = {0, 0, -1, 0};
  const std::int64_t shape[] = {2, 150}, gets[] = {3, 150}, rows[] = {3}, pairs[] = {2, 2};
  velo_tensor in = view_of(from[0], f32, shape), out = view_of(rows_to, f32, gets);
  const velo_tensor targets = view_of(itself, i32, pairs);
  return velo_group_dispatch(w.now, w.groups[0], w.groups[1], &in, &targets, rows, &out);
}
velo_status combine(world& w) {
  static std::int32_t itself[] = {0, 0, -1, 0};
  static float weights[] = {1, 2, 3, 4};
  const std::int64_t had[] = {3, 150}, shape[] = {2, 150}, rows[] = {3}, pairs[] = {2, 2};
  velo_tensor in = view_of(rows_to, f32, had), out = view_of(to[0], f32, shape),
              by = view_of(weights, f32, pairs);
  const velo_tensor targets = view_of(itself, i32, pairs);
  return velo_group_combine(w.now, w.groups[0], w.groups[1], &in, rows, &targets, &by, &out);
}
velo_status plan(velo_group group, velo_collective& made, int rank) {
  const velo_tensor x = view_of(from[rank], f32, most);
  velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
  desc.kind = VELO_COLLECTIVE_ALL_REDUCE;
  desc.in = desc.out = &x;
  return velo_collective_create(group, &desc, &made);
}
void open_planned(world& w) {
  open_one(w);
  must(plan(w.groups[0], w.collective, 0));
}
void open_for_start(world& w) {
  open_for<all_reduce>(w);
  must(plan(w.groups[0], w.collective, 0));
}
void open_for_dispatch(world& w) {
  open_one(w);
  must(velo_group_create(w.context, nullptr, &w.groups[1]));
}

}  // namespace

std::vector<call_row> comm_rows() {
  return {
      {"velo_group_create", open, create_one},
      {"velo_group_create", open, create_met},
      {"velo_transport_query", open,
       [](world& w) { return velo_transport_query(w.context, VELO_TRANSPORT_SHM); }},
      {"velo_group_create_local", open_peer, create_two},
      {"velo_group_create_part", open_two,
       [](world& w) {
         const std::int32_t own[] = {0};
         return velo_group_create_part(w.groups[0], own, 1, nullptr, &w.groups[2]);
       }},
      {"velo_group_shrink",
       [](world& w) {
         open_two(w);
         velo_group_destroy(w.groups[1]);
         must(velo_group_abort(w.groups[0]));
       },
       [](world& w) { return velo_group_shrink(w.groups[0], nullptr, &w.groups[2]); }},
      {"velo_group_history", open_two,
       [](world& w) { return velo_group_history(w.groups[0], text, sizeof text, nullptr); }},
      {"velo_group_destroy", open_one,
       [](world& w) {
         velo_group_destroy(w.groups[0]);
         return gone(velo_group_abort(w.groups[0]));
       }},
      {"velo_group_abort", open_two, [](world& w) { return velo_group_abort(w.groups[0]); }},
      {"velo_group_get_info", open_one,
       [](world& w) {
         velo_group_info info = VELO_GROUP_INFO_INIT;
         return velo_group_get_info(w.groups[0], &info);
       }},
      {"velo_group_describe", open_two,
       [](world& w) { return velo_group_describe(w.groups[0], text, sizeof text, nullptr); }},
      row_of<measure>("velo_group_measure", true),
      row_of<barrier>("velo_group_barrier"),
      row_of<all_reduce>("velo_group_all_reduce"),
      row_of<reduce>("velo_group_reduce"),
      row_of<broadcast>("velo_group_broadcast"),
      row_of<all_gather>("velo_group_all_gather"),
      row_of<all_gather_v>("velo_group_all_gather_v"),
      row_of<reduce_scatter>("velo_group_reduce_scatter"),
      row_of<reduce_scatter_v>("velo_group_reduce_scatter_v"),
      row_of<all_to_all>("velo_group_all_to_all"),
      row_of<all_to_all_v>("velo_group_all_to_all_v"),
      {"velo_collective_create", open_one,
       [](world& w) { return plan(w.groups[0], w.collective, 0); }},
      {"velo_collective_destroy", open_planned,
       destroy<velo_collective_destroy, &world::collective,
               write_text<velo_collective_describe, &world::collective>>},
      {"velo_collective_explain", open_planned,
       write_text<velo_collective_explain, &world::collective>},
      {"velo_collective_start", open_for_start,
       [](world& w) { return velo_collective_start(w.now, w.collective); }},
      {"velo_collective_start",
       [](world& w) {
         open_for_start(w);
         must(velo_stream_create(w.context, &w.queue));
       },
       [](world& w) {
         const velo_status queued = velo_collective_start(w.queue, w.collective);
         return queued != VELO_OK ? queued : velo_stream_synchronize(w.queue);
       }},
      {"velo_collective_describe", open_planned,
       write_text<velo_collective_describe, &world::collective>},
      {"velo_group_dispatch", open_for_dispatch, dispatch},
      {"velo_group_combine", open_for_dispatch, combine},
      row_of<gather>("velo_group_gather"),
      row_of<gather_v>("velo_group_gather_v"),
      row_of<scatter>("velo_group_scatter"),
      row_of<scatter_v>("velo_group_scatter_v"),
      row_of<sent>("velo_group_send"),
      {"velo_group_send", open_two,
       [](world& w) {  // to itself
         const velo_tensor x = view_of(from[0], f32, most);
         return velo_group_send(w.now, w.groups[0], 0, &x);
       }},
      row_of<received>("velo_group_receive"),
      row_of<exchange>("velo_group_exchange"),
      {"velo_group_all_to_all_v",
       [](world& w) {
         open_for<all_to_all_v>(w);
         must(velo_stream_create(w.context, &w.queue));
       },
       [](world& w) {
         const velo_status queued = all_to_all_v(w.queue, w.groups[0], 0);
         return queued != VELO_OK ? queued : velo_stream_synchronize(w.queue);
       }},
  };
}

}  // namespace velo::testing
