// The rows of groups: of one rank, and of two, the second of which calls first, on a queue.
#include "tests/faults/rows.hpp"

namespace velo::testing {
namespace {

float numbers[2][300] = {};
const std::int64_t count[] = {300};

velo_tensor vector_of(int rank) {
  return {numbers[rank], {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_FLOAT, 32, 1}, count, nullptr, 0};
}

velo_status create_one(world& w) {
  return velo_group_create(w.context, nullptr, &w.groups[0]);
}
void open_one(world& w) {
  w.open();
  must(create_one(w));
}
velo_status create_two(world& w) {
  const velo_context both[] = {w.context, w.peer};
  return velo_group_create_local(both, 2, nullptr, w.groups);
}
void open_peer(world& w) {
  w.open();
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;
  desc.allocator = w.allocator();
  must(velo_context_create(&desc, &w.peer));
  must(velo_stream_create(w.peer, &w.peer_queue));
}
void open_two(world& w) {
  open_peer(w);
  must(create_two(w));
}
void open_with_barrier(world& w) {
  open_two(w);
  must(velo_group_barrier(w.peer_queue, w.groups[1]));
}
void open_with_all_reduce(world& w) {
  open_two(w);
  const velo_tensor x = vector_of(1);
  must(velo_group_all_reduce(w.peer_queue, w.groups[1], nullptr, &x, &x));
}
velo_status all_reduce(world& w) {
  const velo_tensor x = vector_of(0);
  return velo_group_all_reduce(w.now, w.groups[0], nullptr, &x, &x);
}
void close_all(world& w) {
  if (w.peer_queue != nullptr) must(velo_stream_synchronize(w.peer_queue));
  velo_context_destroy(w.peer);
  w.peer = nullptr;
  w.peer_queue = nullptr;
  w.groups[0] = w.groups[1] = nullptr;
  w.close();
}

}  // namespace

std::vector<entry> comm_rows() {
  return {
      {"velo_group_create", open, create_one, close_all},
      {"velo_group_create_local", open_peer, create_two, close_all},
      {"velo_group_destroy", open_one,
       [](world& w) {
         velo_group_destroy(w.groups[0]);
         return gone(velo_group_abort(w.groups[0]));
       },
       close_all},
      {"velo_group_abort", open_two, [](world& w) { return velo_group_abort(w.groups[0]); },
       close_all},
      {"velo_group_get_info", open_one,
       [](world& w) {
         velo_group_info info = VELO_GROUP_INFO_INIT;
         return velo_group_get_info(w.groups[0], &info);
       },
       close_all},
      {"velo_group_describe", open_two,
       [](world& w) { return velo_group_describe(w.groups[0], text, sizeof text, nullptr); },
       close_all},
      {"velo_group_barrier", open_with_barrier,
       [](world& w) { return velo_group_barrier(w.now, w.groups[0]); }, close_all},
      {"velo_group_all_reduce", open_with_all_reduce, all_reduce, close_all},
      {"velo_group_all_reduce", open_two,
       [](world& w) {
         const velo_tensor x = vector_of(1);
         const velo_status queued =
             velo_group_all_reduce(w.peer_queue, w.groups[1], nullptr, &x, &x);
         return queued != VELO_OK ? queued : all_reduce(w);
       },
       close_all},
  };
}

}  // namespace velo::testing
