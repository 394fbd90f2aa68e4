// The rows of core and memory: contexts, kernels, pools, adaptors, recompute, swaps.
#include <dlfcn.h>

#include <cstring>
#include <iterator>
#include <stdexcept>

#include "tests/capi/values.hpp"
#include "tests/faults/inside_parts.hpp"
#include "tests/structs.hpp"

namespace velo::testing {
namespace {

// Objects that wait for work of their context as they end are kept, too, where that work cannot
// go on.
const std::set<std::string> in_a_turn = {"velo_context", "velo_stream", "velo_swap", "velo_group"};

float numbers[3][side * side] = {};
const std::int64_t square[] = {side, side};

velo_tensor matrix(int i) {
  return view_of(numbers[i], f32, square);
}

velo_status load_asking(scene& s) {
  const char* path = VELO_TEST_PLUGINS "/plugin_asks.so";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("no plugin that asks");
  auto* asked = static_cast<void (**)()>(dlsym(library, "plugin_asked"));
  *asked = &meddle;
  const velo_status status = velo_plugin_load(s.context, path);
  *asked = nullptr;
  dlclose(library);
  return status;
}

velo_status create_tensor(scene& s, velo_managed_tensor*& made) {
  return velo_tensor_create(s.context, &f32, 2, square, &made);
}

velo_status release_hosts_tensor(scene&) {
  velo_managed_tensor mine{};
  mine.version = {1, 0};
  mine.deleter = [](velo_managed_tensor*) { meddle(); };
  velo_tensor_release(&mine);
  return VELO_OK;
}

void replace_adaptor(scene& s, velo_adaptor_kind kind) {
  velo_adaptor_destroy(s.adaptor);
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.kind = kind;
  desc.upstream = &scene_allocator;
  desc.event = [](void*, velo_memory_event, void*, std::uint64_t, void*) -> std::int32_t {
    meddle_in("event");
    return 0;
  };
  must(velo_adaptor_create(&desc, &s.adaptor));
}

velo_status restore(scene& s) {
  meddles_in = "restore";
  must(add_region(s.recompute, 64));
  must(velo_recompute_release(s.recompute, 0, nullptr));
  return velo_recompute_restore(s.recompute, 0, nullptr);
}

velo_status update(scene& s) {
  std::uint64_t object = 0;
  must(velo_swap_add(s.swap, nullptr, 4096, VELO_SWAP_WARM, &object));
  must(velo_swap_out(s.swap, object, s.now, nullptr));
  return velo_swap_update(
      s.swap, &object, 1, 2,
      [](void*, std::uint64_t, std::uint64_t, void* const*) -> std::int32_t {
        meddle();
        return 0;
      },
      nullptr);
}

// The pool's request fails, whoever makes it.
template <velo_status (*Call)(scene&)>
velo_status under_pressure(scene& s) {
  meddles_in = "pressure";
  return Call(s);
}
velo_status by_pool(scene& s) {
  return allocate(s.pool, too_much);
}
velo_status by_plan(scene& s) {
  const velo_pool_request request = request_of(too_much);
  void* memory = nullptr;
  return velo_plan_allocate(s.plan, &request, &memory);
}
velo_status by_adaptor(scene& s) {
  return allocate_through(allocator_of(s.adaptor), too_much);
}
velo_status by_recompute(scene& s) {
  return add_region(s.recompute, too_much);
}
velo_status by_swap(scene& s) {
  std::uint64_t object = 0;
  return velo_swap_add(s.swap, nullptr, too_much, VELO_SWAP_WARM, &object);
}

// The object has no room in the pool, which a copy's thread asks for it.
velo_status swap_out_too_much(scene& s) {
  static char object[std::uint64_t{9} << 20];
  velo_swap_destroy(s.swap);
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.pool = s.pool;
  must(velo_swap_create(s.context, &desc, &s.swap));
  must(velo_swap_add(s.swap, object, sizeof object, VELO_SWAP_WARM, &s.object));
  must(velo_swap_out(s.swap, s.object, s.now, nullptr));
  return velo_swap_wait(s.swap, s.object, s.now);
}

velo_status multiply(scene& s, const char* function) {
  const velo_tensor a = matrix(0), b = matrix(1), y = matrix(2);
  must(velo_pack_update(s.now, s.pack, &b));
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = &a;
  args.packed = s.pack;
  args.c = &y;
  meddles_in = function;
  return velo_matmul(s.now, &args);
}
velo_status update_pack(scene& s) {
  const velo_tensor b = matrix(1);
  meddles_in = "parallel_for";
  must(velo_pack_update(s.queue, s.pack, &b));
  return velo_stream_synchronize(s.queue);
}
velo_status call_closure(scene& s) {
  void* function = nullptr;
  velo_closure_destroy(s.closure);
  must(velo_closure_create(s.now, "of_host", "y", &function, &s.closure));
  const velo_tensor y = matrix(0);
  numbers[0][0] = 1;
  meddles_in = "kernel";
  return reinterpret_cast<velo_status (*)(const velo_tensor*)>(function)(&y);
}

}  // namespace

velo_status allocate(velo_pool pool, std::uint64_t bytes) {
  const velo_pool_request request = request_of(bytes);
  void* memory = nullptr;
  const velo_status status = velo_pool_allocate(pool, &request, &memory);
  if (status == VELO_OK) velo_pool_free(pool, memory, bytes, nullptr);
  return status;
}
velo_status allocate_through(const velo_allocator& allocator, std::uint64_t bytes) {
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  void* memory = allocator.allocate(allocator.user, bytes, 64, &cpu, nullptr);
  if (memory == nullptr) return VELO_ERR_MEMORY;
  allocator.deallocate(allocator.user, memory, bytes, &cpu, nullptr);
  return VELO_OK;
}
velo_allocator allocator_of(velo_adaptor adaptor) {
  velo_allocator made = VELO_ALLOCATOR_INIT;
  must(velo_adaptor_allocator(adaptor, &made));
  return made;
}
velo_status add_region(velo_recompute to, std::uint64_t bytes) {
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.name = "region";
  region.restore = [](void*, const velo_recompute_call*) -> velo_status {
    meddle_in("restore");
    return VELO_OK;
  };
  region.output_bytes = &bytes;
  region.output_count = 1;
  std::int64_t index = -1;
  return velo_recompute_add(to, &region, nullptr, &index);
}

velo_status call_kernel(velo_stream on, float first) {
  numbers[0][0] = first;
  const velo_tensor y = matrix(0);
  const velo_named_value value = {"y", of(y)};
  return velo_op_call(on, "of_host", &value, 1);
}

std::vector<inside_row> memory_inside_rows() {
  return {
      {"velo_log_fn",
       "of a context",
       {"velo_context"},
       [](scene& s) -> velo_status {
         velo_kernel_destroy(s.kernel);
         meddles_in = "log";
         register_kernel(s);
         return VELO_OK;
       }},
      {"velo_log_fn", "of a stream's failure", in_a_turn,
       [](scene& s) {
         meddles_in = "log";
         must(call_kernel(s.queue, -1));
         return velo_stream_synchronize(s.queue);
       },
       VELO_ERR_FOREIGN},
      {"velo_log_fn",
       "of a pool",
       {"velo_pool"},
       [](scene& s) {
         meddles_in = "pool log";
         return velo_pool_free(s.pool, numbers, 64, nullptr);
       },
       VELO_ERR_ARGUMENT},
      {"velo_plugin_query_fn", "of a plugin", {"velo_context"}, load_asking},
      {"velo_allocator.allocate",
       "of a tensor",
       {"velo_context"},
       [](scene& s) {
         velo_managed_tensor* made = nullptr;
         meddles_in = "allocate";
         const velo_status status = create_tensor(s, made);
         if (status == VELO_OK) velo_tensor_release(made);
         return status;
       }},
      {"velo_allocator.allocate", "of a product's scratch", with(in_a_turn, {"velo_pack"}),
       [](scene& s) { return multiply(s, "allocate"); }},
      {"velo_allocator.allocate",
       "of an adaptor",
       {"velo_adaptor"},
       [](scene& s) {
         replace_adaptor(s, VELO_ADAPTOR_STATISTICS);
         meddles_in = "allocate";
         return allocate_through(allocator_of(s.adaptor), 64);
       }},
      {"velo_allocator.deallocate",
       "of a tensor",
       {"velo_context"},
       [](scene& s) -> velo_status {
         velo_managed_tensor* made = nullptr;
         must(create_tensor(s, made));
         meddles_in = "deallocate";
         velo_tensor_release(made);
         return VELO_OK;
       }},
      {"velo_parallel_for.run", "of a product", with(in_a_turn, {"velo_pack"}),
       [](scene& s) { return multiply(s, "parallel_for"); }},
      {"velo_parallel_for.run", "of a queued pack", with(in_a_turn, {"velo_pack"}), update_pack},
      {"velo_managed_tensor.deleter", "of the host's", {}, release_hosts_tensor},
      {"a foreign kernel", "inline", with(in_a_turn, {"velo_kernel"}),
       [](scene& s) {
         meddles_in = "kernel";
         return call_kernel(s.now, 1);
       }},
      {"a foreign kernel", "queued", with(in_a_turn, {"velo_kernel"}),
       [](scene& s) {
         meddles_in = "kernel";
         must(call_kernel(s.queue, 1));
         return velo_stream_synchronize(s.queue);
       }},
      {"a foreign kernel", "by a closure", with(in_a_turn, {"velo_kernel", "velo_closure"}),
       call_closure},
      {"velo_pool_pressure_fn",
       "by a pool",
       {"velo_pool"},
       under_pressure<by_pool>,
       VELO_ERR_MEMORY},
      {"velo_pool_pressure_fn",
       "by a plan",
       {"velo_pool", "velo_plan"},
       under_pressure<by_plan>,
       VELO_ERR_MEMORY},
      {"velo_pool_pressure_fn",
       "by an adaptor",
       {"velo_pool", "velo_adaptor"},
       under_pressure<by_adaptor>,
       VELO_ERR_MEMORY},
      {"velo_pool_pressure_fn",
       "by a recompute",
       {"velo_pool", "velo_recompute"},
       under_pressure<by_recompute>,
       VELO_ERR_MEMORY},
      {"velo_pool_pressure_fn",
       "by a swap",
       {"velo_pool", "velo_swap", "velo_context"},
       under_pressure<by_swap>,
       VELO_ERR_MEMORY},
      {"velo_pool_pressure_fn", "on a swap's thread", with(in_a_turn, {"velo_pool"}),
       under_pressure<swap_out_too_much>, VELO_ERR_MEMORY},
      {"velo_memory_event_fn",
       "of an adaptor",
       {"velo_adaptor"},
       [](scene& s) {
         replace_adaptor(s, VELO_ADAPTOR_CALLBACK);
         meddles_in = "event";
         return allocate_through(allocator_of(s.adaptor), 64);
       }},
      {"velo_recompute_fn", "of a region", {"velo_recompute"}, restore},
      {"velo_swap_update_fn", "of a swap", {"velo_swap", "velo_context"}, update},
  };
}

const std::vector<inside_row>& inside_rows() {
  static const std::vector<inside_row> all = [] {
    std::vector<inside_row> made = memory_inside_rows();
    for (const auto& more : {comm_inside_rows(), executor_inside_rows()})
      made.insert(made.end(), more.begin(), more.end());
    return made;
  }();
  return all;
}

}  // namespace velo::testing
