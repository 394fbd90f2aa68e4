// Objects that keep others: what was destroyed first is refused with a status, or was not needed
// any more.
//
// A row makes a keeper, destroys what it keeps, and uses it; the scene then destroys the rest.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "tests/capi/values.hpp"
#include "tests/faults/inside_parts.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

namespace {

constexpr std::uint64_t block = 4096;
float values[side * side] = {};
const std::int64_t square[] = {side, side}, some[] = {16};

velo_status act(void*, velo_executor_call* call) {
  call->outputs[0] = view_of(values, f32, some);
  call->output_count = 1;
  return VELO_OK;
}
void make_executor(scene& s, const velo_link& link) {
  make_schedule(s, 0);
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.link = &link;
  desc.forward = desc.backward = &act;
  must(velo_executor_create(s.context, s.schedule, &desc, &s.executor));
}

// Each function of a link over what is gone; the first status that is not HANDLE.
velo_status use_link(const velo_link& link) {
  char bytes[64] = {};
  void* borrowed = nullptr;
  if (link.abort != nullptr) link.abort(link.user, "gone");
  if (link.give_back != nullptr) link.give_back(link.user, bytes);
  const velo_status all[] = {
      link.send(link.user, 1, bytes, sizeof bytes), link.receive(link.user, 1, bytes, sizeof bytes),
      link.start_send == nullptr ? VELO_ERR_HANDLE : link.start_send(link.user, 1, bytes, 64),
      link.finish == nullptr ? VELO_ERR_HANDLE : link.finish(link.user),
      link.borrow == nullptr ? VELO_ERR_HANDLE : link.borrow(link.user, 1, 64, &borrowed)};
  for (const velo_status one : all)
    if (one != VELO_ERR_HANDLE) return one;
  return VELO_ERR_HANDLE;
}

// A context of its own over an allocator that ends before it.
template <class End>
velo_status outlive(const velo_allocator& from, End&& end) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &from;
  velo_context made = nullptr;
  must(velo_context_create(&desc, &made));
  end();
  velo_managed_tensor* tensor = nullptr;
  const velo_status status = velo_tensor_create(made, &f32, 1, some, &tensor);
  velo_context_destroy(made);
  return status;
}

velo_status swap_out(scene& s, const velo_swap_desc& desc) {
  velo_swap_destroy(s.swap);
  must(velo_swap_create(s.context, &desc, &s.swap));
  std::uint64_t object = 0;
  must(velo_swap_add(s.swap, values, block, VELO_SWAP_WARM, &object));
  velo_pool_destroy(s.pool);
  const velo_status queued = velo_swap_out(s.swap, object, s.now, nullptr);
  return queued != VELO_OK ? queued : velo_swap_wait(s.swap, object, s.now);
}

velo_status use_buckets(scene& s) {
  const velo_status ready = velo_buckets_ready(s.buckets, s.now, 0);
  return ready != VELO_OK ? ready : velo_buckets_finish(s.buckets, s.now);
}

// Calls a closure of the scene's kernel on a stream after `end`.
template <class End>
velo_status call_closure(scene& s, velo_stream on, End&& end) {
  void* function = nullptr;
  velo_closure_destroy(s.closure);
  must(velo_closure_create(on, "of_host", "y", &function, &s.closure));
  end();
  const velo_tensor y = view_of(values, f32, some);
  return reinterpret_cast<velo_status (*)(const velo_tensor*)>(function)(&y);
}

// A stream that does nothing until it is let go, by an event of another one.
velo_status queued_behind(scene& s, velo_status (*queue)(scene&)) {
  static bool waits = false;
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = "waits_for_host";
  desc.signature = "s(lp)";
  desc.binding = "y.numel, y.data";
  desc.tensors = "inout y f32";
  desc.function = reinterpret_cast<void*>(+[](std::int64_t, float*) -> velo_status {
    while (__atomic_load_n(&waits, __ATOMIC_ACQUIRE)) sched_yield();
    return VELO_OK;
  });
  __atomic_store_n(&waits, true, __ATOMIC_RELEASE);
  velo_kernel kernel = nullptr;
  must(velo_kernel_register(s.context, &desc, &kernel));
  const velo_tensor y = view_of(values, f32, some);
  const velo_named_value value = {"y", of(y)};
  must(velo_op_call(s.queue, desc.op, &value, 1));
  must(queue(s));
  velo_pack_destroy(s.pack);
  __atomic_store_n(&waits, false, __ATOMIC_RELEASE);
  return velo_stream_synchronize(s.queue);
}

struct row {
  const char* kept;
  const char* keeper;
  velo_status (*use)(scene&);
  velo_status expected;
};

const row rows[] = {
    {"a mailbox", "the link of an executor",
     [](scene& s) {
       velo_link link = VELO_LINK_INIT;
       must(velo_mailbox_get_link(s.mailbox, 0, &link));
       make_executor(s, link);
       velo_mailbox_destroy(s.mailbox);
       return velo_executor_run(s.now, s.executor);
     },
     VELO_ERR_HANDLE},
    {"a mailbox", "a link, of any rank",
     [](scene&) {
       velo_mailbox many = nullptr;
       must(velo_mailbox_create(256, deadline, &many));
       velo_link links[4] = {};
       for (int i = 0; i < 4; ++i) {
         links[i] = VELO_LINK_INIT;
         must(velo_mailbox_get_link(many, 65 * i, &links[i]));
       }
       velo_mailbox_destroy(many);
       for (const velo_link& one : links)
         if (use_link(one) != VELO_ERR_HANDLE) return use_link(one);
       return use_link(links[0]);
     },
     VELO_ERR_HANDLE},
    {"a group", "the link of an executor",
     [](scene& s) {
       open_local_groups(s);
       velo_link link = VELO_LINK_INIT;
       must(velo_group_get_link(s.groups[0], &link));
       make_executor(s, link);
       velo_group_destroy(s.groups[0]);
       return velo_executor_run(s.now, s.executor);
     },
     VELO_ERR_HANDLE},
    {"a group", "a link",
     [](scene& s) {
       open_local_groups(s);
       velo_link link = VELO_LINK_INIT;
       must(velo_group_get_link(s.groups[0], &link));
       velo_group_destroy(s.groups[0]);
       return use_link(link);
     },
     VELO_ERR_HANDLE},
    {"a schedule", "an executor",
     [](scene& s) {
       velo_schedule_destroy(s.schedule);
       return velo_executor_run(s.now, s.executor);
     },
     VELO_OK},
    {"a schedule", "a timeline",
     [](scene& s) {
       velo_schedule_destroy(s.schedule);
       velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
       return velo_timeline_get_stats(s.timeline, &stats);
     },
     VELO_OK},
    {"a group", "buckets",
     [](scene& s) {
       velo_group_destroy(s.groups[0]);
       return use_buckets(s);
     },
     VELO_ERR_HANDLE},
    {"a stream", "buckets",
     [](scene& s) {
       velo_stream_destroy(s.queue);
       return use_buckets(s);
     },
     VELO_ERR_HANDLE},
    {"a group", "a planned collective",
     [](scene& s) {
       velo_group_destroy(s.groups[0]);
       return velo_collective_start(s.now, s.collective);
     },
     VELO_ERR_HANDLE},
    {"a group", "a part of it",
     [](scene& s) {
       open_local_groups(s);
       const std::int32_t own[] = {0};
       must(velo_group_create_part(s.groups[0], own, 1, nullptr, &s.groups[2]));
       velo_group_destroy(s.groups[0]);
       return velo_group_barrier(s.now, s.groups[2]);
     },
     VELO_OK},
    {"a pool", "a swap's objects",
     [](scene& s) {
       std::uint64_t object = 0;
       must(velo_swap_add(s.swap, nullptr, block, VELO_SWAP_WARM, &object));
       velo_pool_destroy(s.pool);
       return velo_swap_add(s.swap, nullptr, block, VELO_SWAP_WARM, &object);
     },
     VELO_ERR_HANDLE},
    {"a pool", "a swap's tier",
     [](scene& s) {
       velo_swap_desc desc = VELO_SWAP_DESC_INIT;
       desc.pool = s.pool;
       return swap_out(s, desc);
     },
     VELO_ERR_HANDLE},
    {"a pool", "an adaptor",
     [](scene& s) {
       velo_pool_destroy(s.pool);
       return allocate_through(allocator_of(s.adaptor), block);
     },
     VELO_ERR_MEMORY},
    {"an adaptor", "an adaptor above it",
     [](scene& s) {
       const velo_allocator below = allocator_of(s.adaptor);
       velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
       desc.kind = VELO_ADAPTOR_STATISTICS;
       desc.upstream = &below;
       velo_adaptor above = nullptr;
       must(velo_adaptor_create(&desc, &above));
       velo_adaptor_destroy(s.adaptor);
       const velo_status status = allocate_through(allocator_of(above), block);
       velo_adaptor_destroy(above);
       return status;
     },
     VELO_ERR_MEMORY},
    {"a pool", "a context",
     [](scene& s) {
       velo_allocator from = VELO_ALLOCATOR_INIT;
       must(velo_pool_allocator(s.pool, &from));
       return outlive(from, [&] { velo_pool_destroy(s.pool); });
     },
     VELO_ERR_MEMORY},
    {"an adaptor", "a context",
     [](scene& s) {
       return outlive(allocator_of(s.adaptor), [&] { velo_adaptor_destroy(s.adaptor); });
     },
     VELO_ERR_MEMORY},
    {"a context", "a tensor of it",
     [](scene& s) {
       velo_managed_tensor* made = nullptr;
       must(velo_tensor_create(s.context, &f32, 1, some, &made));
       velo_context_destroy(s.context);
       std::memset(made->tensor.data, 0, 64);
       velo_tensor_release(made);
       return velo_stream_synchronize(s.queue);
     },
     VELO_ERR_HANDLE},
    {"a pool", "a recompute",
     [](scene& s) {
       must(add_region(s.recompute, block));
       velo_pool_destroy(s.pool);
       return add_region(s.recompute, block);
     },
     VELO_ERR_MEMORY},
    {"a pool", "a plan",
     [](scene& s) {
       velo_pool_destroy(s.pool);
       const velo_pool_request request = request_of(block);
       void* memory = nullptr;
       return velo_plan_allocate(s.plan, &request, &memory);
     },
     VELO_ERR_HANDLE},
    {"a stream", "an event",
     [](scene& s) {
       must(velo_event_record(s.event, s.queue));
       velo_stream_destroy(s.queue);
       must(velo_stream_wait(s.now, s.event));
       return velo_event_synchronize(s.event, -1);
     },
     VELO_OK},
    {"a stream", "a pool's block that it may use",
     [](scene& s) {
       const velo_pool_request request = request_of(block);
       void* memory = nullptr;
       must(velo_pool_allocate(s.pool, &request, &memory));
       must(velo_pool_free(s.pool, memory, block, s.queue));
       velo_stream_destroy(s.queue);
       return velo_pool_trim(s.pool, 0, nullptr);
     },
     VELO_OK},
    {"a stream", "a closure",
     [](scene& s) { return call_closure(s, s.queue, [&] { velo_stream_destroy(s.queue); }); },
     VELO_ERR_HANDLE},
    {"a kernel", "a closure",
     [](scene& s) { return call_closure(s, s.now, [&] { velo_kernel_destroy(s.kernel); }); },
     VELO_ERR_NOT_FOUND},
    {"a pack", "a queued product",
     [](scene& s) {
       return queued_behind(s, [](scene& in) {
         static float sums[side * side];
         static const velo_tensor a = view_of(values, f32, square), c = view_of(sums, f32, square);
         velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
         args.a = &a;
         args.packed = in.pack;
         args.c = &c;
         return velo_matmul(in.queue, &args);
       });
     },
     VELO_ERR_HANDLE},
    {"a pack", "a queued update",
     [](scene& s) {
       return queued_behind(s, [](scene& in) {
         const velo_tensor weight = view_of(values, f32, square);
         return velo_pack_update(in.queue, in.pack, &weight);
       });
     },
     VELO_ERR_HANDLE},
};

}  // namespace

TEST_CASE("what is used after an object that it keeps was destroyed answers with a status") {
  for (const row& one : rows) {
    INFO(one.keeper << ", without " << one.kept);
    scene all;
    CHECK(one.use(all) == one.expected);
  }
}
