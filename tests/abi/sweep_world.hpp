// What the sweep gives to functions: a world with a live handle of every kind, and values that look
// plausible to somebody who read the header without knowing what it means.
//
// Functions and parameters come from the generated table. What one call destroys, the next does not
// miss: each gets a world of its own.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/signature.hpp"
#include "velo/velo.h"

namespace velo::testing {

using core::direction;
using core::function_info;
using core::parameter_info;
using core::thread_class;
using core::value_type;
#include "abi/generated/functions.inc"

inline velo_status fill(std::int64_t, float*) {
  return VELO_OK;
}

inline constexpr const char* kinds[] = {
#define VELO_HANDLE(name, article, order) "velo_" #name,
#include "abi/generated/handles.inc"
#undef VELO_HANDLE
};
inline constexpr int kind_count = sizeof kinds / sizeof kinds[0];

// What the library says of itself, read once.
inline const std::string& self_description() {
  static const std::string all = [] {
    std::uint64_t needed = 0;
    velo_describe(nullptr, 0, &needed);
    std::string text(needed, 0);
    velo_describe(&text[0], needed, nullptr);
    return text;
  }();
  return all;
}

// One live handle of each kind, and memory that plausible pointers may point to. Kinds that take
// more than a context to make are made here; others by the function that hands one out.
class world {
 public:
  void* handles[kind_count] = {};

  world() {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = 1;
    REQUIRE(velo_context_create(&desc, &context_) == VELO_OK);
    REQUIRE(velo_context_stream(context_, &inline_) == VELO_OK);
    velo_stream stream = nullptr;
    velo_event event = nullptr;
    velo_pack pack = nullptr;
    velo_kernel kernel = nullptr;
    velo_closure closure = nullptr;
    REQUIRE(velo_pool_create(nullptr, &pool_) == VELO_OK);
    velo_allocator below = VELO_ALLOCATOR_INIT;
    REQUIRE(velo_pool_allocator(pool_, &below) == VELO_OK);
    velo_adaptor_desc over = VELO_ADAPTOR_DESC_INIT;
    over.upstream = &below;
    REQUIRE(velo_adaptor_create(&over, &adaptor_) == VELO_OK);
    velo_plan_desc steps = VELO_PLAN_DESC_INIT;
    steps.pool = pool_;
    REQUIRE(velo_plan_create(&steps, &plan_) == VELO_OK);
    velo_recompute_desc kept = VELO_RECOMPUTE_DESC_INIT;
    kept.allocator = &below;
    REQUIRE(velo_recompute_create(&kept, &recompute_) == VELO_OK);
    REQUIRE(velo_recompute_plan_create(&recompute_plan_) == VELO_OK);
    REQUIRE(velo_topology_create(nullptr, &topology_) == VELO_OK);
    velo_schedule_desc order = VELO_SCHEDULE_DESC_INIT;
    order.kind = VELO_SCHEDULE_1F1B;
    order.ranks = order.microbatches = 2;
    REQUIRE(velo_schedule_create(&order, &schedule_) == VELO_OK);
    REQUIRE(velo_schedule_simulate(schedule_, nullptr, &timeline_) == VELO_OK);
    REQUIRE(velo_mailbox_create(2, 1000, &mailbox_) == VELO_OK);
    velo_executor_desc part = VELO_EXECUTOR_DESC_INIT;
    velo_link link = VELO_LINK_INIT;
    REQUIRE(velo_mailbox_get_link(mailbox_, 0, &link) == VELO_OK);
    part.link = &link;
    part.forward = part.backward = [](void*, velo_executor_call*) -> velo_status { return 0; };
    velo_executor executor = nullptr;
    REQUIRE(velo_executor_create(context_, schedule_, &part, &executor) == VELO_OK);
    static const char job[] =
        "{\"model\": {\"layers\": 1, \"hidden\": 8, \"heads\": 1, \"ffn_hidden\": 8, "
        "\"vocabulary\": "
        "8}, \"training\": {\"global_batch\": 1, \"sequence\": 8}, \"accelerators\": 1}";
    velo_tune_desc search = VELO_TUNE_DESC_INIT;
    search.config = job;
    search.config_length = sizeof job - 1;
    REQUIRE(velo_tune(&search, &tuning_) == VELO_OK);
    velo_swap swap = nullptr;
    REQUIRE(velo_swap_create(context_, nullptr, &swap) == VELO_OK);
    velo_group group = nullptr;
    REQUIRE(velo_group_create(context_, nullptr, &group) == VELO_OK);
    const velo_collective_desc barrier = VELO_COLLECTIVE_DESC_INIT;
    velo_collective collective = nullptr;
    REQUIRE(velo_collective_create(group, &barrier, &collective) == VELO_OK);
    REQUIRE(velo_stream_create(context_, &stream) == VELO_OK);
    REQUIRE(velo_event_create(context_, &event) == VELO_OK);
    REQUIRE(velo_event_record(event, stream) == VELO_OK);
    const velo_tensor gradients{memory_,
                                {VELO_DEVICE_CPU, 0},
                                1,
                                {VELO_DTYPE_FLOAT, 32, 1},
                                const_cast<std::int64_t*>(&slice_),
                                nullptr,
                                0};
    velo_buckets buckets = nullptr;
    REQUIRE(velo_buckets_create(stream, group, &gradients, &slice_, 1, nullptr, &buckets) ==
            VELO_OK);
    velo_pack_desc weight = VELO_PACK_DESC_INIT;
    weight.k = weight.n = 4;
    REQUIRE(velo_pack_create(context_, &weight, &pack) == VELO_OK);
    velo_kernel_desc foreign = VELO_KERNEL_DESC_INIT;
    foreign.op = "swept";
    foreign.signature = "s(lp)";
    foreign.binding = "y.numel, y.data";
    foreign.tensors = "out y f32";
    foreign.function = reinterpret_cast<void*>(&fill);
    REQUIRE(velo_kernel_register(context_, &foreign, &kernel) == VELO_OK);
    void* function = nullptr;
    REQUIRE(velo_closure_create(stream, "rms_norm", "x, gamma, y", &function, &closure) == VELO_OK);
    const std::map<std::string, void*> made = {{"velo_context", context_},
                                               {"velo_stream", stream},
                                               {"velo_event", event},
                                               {"velo_pack", pack},
                                               {"velo_kernel", kernel},
                                               {"velo_closure", closure},
                                               {"velo_pool", pool_},
                                               {"velo_adaptor", adaptor_},
                                               {"velo_plan", plan_},
                                               {"velo_recompute", recompute_},
                                               {"velo_recompute_plan", recompute_plan_},
                                               {"velo_swap", swap},
                                               {"velo_group", group},
                                               {"velo_collective", collective},
                                               {"velo_buckets", buckets},
                                               {"velo_topology", topology_},
                                               {"velo_schedule", schedule_},
                                               {"velo_timeline", timeline_},
                                               {"velo_mailbox", mailbox_},
                                               {"velo_executor", executor},
                                               {"velo_tuning", tuning_}};
    for (int k = 0; k < kind_count; ++k) {
      const auto known = made.find(kinds[k]);
      handles[k] = known != made.end() ? known->second : create(kinds[k]);
    }
    std::memset(memory_, 0, sizeof memory_);
    elements_ = reinterpret_cast<float*>(memory_ + 1024);
    const std::int64_t shape[2] = {4, 4};
    std::memcpy(memory_ + 512, shape, sizeof shape);
    tensor_ = new (memory_ + 256) velo_tensor{elements_,
                                              {VELO_DEVICE_CPU, 0},
                                              2,
                                              {VELO_DTYPE_FLOAT, 32, 1},
                                              reinterpret_cast<std::int64_t*>(memory_ + 512),
                                              nullptr,
                                              0};
    blocks_.reserve(16);
  }
  ~world() {
    velo_context_destroy(context_);
    velo_recompute_destroy(recompute_);  // no context owns these
    velo_recompute_plan_destroy(recompute_plan_);
    velo_adaptor_destroy(adaptor_);
    velo_plan_destroy(plan_);
    velo_pool_destroy(pool_);
    velo_topology_destroy(topology_);
    velo_timeline_destroy(timeline_);
    velo_mailbox_destroy(mailbox_);
    velo_schedule_destroy(schedule_);
    velo_tuning_destroy(tuning_);
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  velo_context context() const { return context_; }
  const velo_tensor* tensor() const { return tensor_; }

  void* zeros(std::size_t bytes) {
    blocks_.push_back(std::vector<std::uint64_t>(bytes / 8, 0));
    return blocks_.back().data();
  }
  void take_back() { blocks_.clear(); }  // the memory that a call was given
  bool alive() const {
    velo_stream stream = nullptr;
    return velo_context_stream(context_, &stream) == VELO_OK && stream == inline_;
  }

 private:
  // A handle from velo_<kind>_create(context, &handle).
  void* create(const std::string& kind) const {
    void* made = nullptr;
    velo_value values[2] = {{VELO_VALUE_HANDLE, 0, {0}}, {VELO_VALUE_POINTER, 0, {0}}};
    values[0].as.p = context_;
    values[1].as.p = &made;
    INFO(kind);
    REQUIRE(velo_invoke((kind + "_create").c_str(), values, 2, nullptr) == VELO_OK);
    return made;
  }

  velo_context context_ = nullptr;
  velo_pool pool_ = nullptr;
  velo_adaptor adaptor_ = nullptr;
  velo_plan plan_ = nullptr;
  velo_recompute recompute_ = nullptr;
  velo_recompute_plan recompute_plan_ = nullptr;
  velo_topology topology_ = nullptr;
  velo_tuning tuning_ = nullptr;
  velo_schedule schedule_ = nullptr;
  velo_timeline timeline_ = nullptr;
  velo_mailbox mailbox_ = nullptr;
  velo_stream inline_ = nullptr;
  const std::int64_t slice_ = 16;
  alignas(64) unsigned char memory_[4096];
  velo_tensor* tensor_;
  float* elements_;
  std::vector<std::vector<std::uint64_t>> blocks_;
};

// What a pointer points to, without const.
inline std::string pointed_to(const parameter_info& p) {
  std::string type = p.type;
  if (type.rfind("const ", 0) == 0) type.erase(0, 6);
  type.pop_back();
  return type;
}

// The kind of handles that a pointer points to, -1: of none.
inline int kind_pointed_to(const parameter_info& p) {
  const std::string type = pointed_to(p);
  for (int i = 0; i < kind_count; ++i)
    if (type == kinds[i]) return i;
  return -1;
}

// Whether a pointer's struct begins with its size, as the self-description says.
inline bool is_sized(const parameter_info& p) {
  const std::string type = pointed_to(p);
  if (kind_pointed_to(p) >= 0) return false;
  if (type.size() > 5 && type.compare(type.size() - 5, 5, "_args") == 0) return true;
  const std::string& all = self_description();
  const std::size_t at = all.find("{\"name\":\"" + type + "\",\"header\"");
  return at != std::string::npos && all.find("\"sized\":true", at) < all.find("\"fields\"", at);
}

inline int kind_of(const parameter_info& p) {
  for (int i = 0; i < kind_count; ++i)
    if (std::strcmp(p.type, kinds[i]) == 0) return i;
  FAIL("a handle of a kind the sweep does not know: " << p.type);
  return -1;
}

inline bool is_pointer(const parameter_info& p) {
  return p.kind == value_type::handle || p.kind == value_type::pointer ||
         p.kind == value_type::string || p.kind == value_type::tensor || p.kind == value_type::ints;
}

inline velo_value integer(std::int64_t i) {
  velo_value v{VELO_VALUE_INT, 0, {0}};
  v.as.i = i;
  return v;
}

inline velo_value pointer(const parameter_info& p, const void* address) {
  velo_value v{VELO_VALUE_POINTER, 0, {0}};
  if (p.kind == value_type::handle) v.kind = VELO_VALUE_HANDLE;
  if (p.kind == value_type::string) v.kind = VELO_VALUE_STRING;
  if (p.kind == value_type::tensor) v.kind = VELO_VALUE_TENSOR;
  if (p.kind == value_type::ints) v.kind = VELO_VALUE_INTS;
  v.as.p = const_cast<void*>(address);
  return v;
}

// The ends of an integer's type, and what is next to them; none for other types.
inline std::vector<std::int64_t> ends_of(value_type kind) {
  using limit32 = std::numeric_limits<std::int32_t>;
  using limit64 = std::numeric_limits<std::int64_t>;
  switch (kind) {
    case value_type::i32:
      return {limit32::min(), -1, 0, limit32::max()};
    case value_type::u32:
      return {0, std::numeric_limits<std::uint32_t>::max()};
    case value_type::i64:
      return {limit64::min(), -1, 0, limit64::max()};
    case value_type::u64:
      return {0, limit64::max()};
    default:
      return {};
  }
}

inline const char* plausible_string(const parameter_info& p) {
  if (std::strcmp(p.name, "op") == 0) return "rms_norm";
  if (std::strcmp(p.name, "function") == 0) return "velo_op_count";
  if (std::strcmp(p.name, "key") == 0) return "level";
  if (std::strcmp(p.name, "value") == 0) return "1";
  if (std::strcmp(p.name, "path") == 0) return "/dev/null/x";  // leaves nothing behind
  return "x";
}

// What a call might be given by somebody who read the header, without knowing what it means.
inline velo_value plausible(world& w, const parameter_info& p) {
  switch (p.kind) {
    case value_type::handle:
      return pointer(p, w.handles[kind_of(p)]);
    case value_type::string:
      return pointer(p, plausible_string(p));
    case value_type::tensor:
      return pointer(p, w.tensor());
    case value_type::f64: {
      velo_value v{VELO_VALUE_FLOAT, 0, {0}};
      v.as.f = 1;
      return v;
    }
    case value_type::ints:
      return pointer(p, w.zeros(4096));
    case value_type::pointer: {
      const bool text = std::strcmp(p.type, "char*") == 0;  // capacity may be said to be anything
      void* block = w.zeros(text ? 4 << 20 : 65536);
      const std::uint32_t size = 4096;  // legal, and more than any struct the library knows
      if (is_sized(p)) std::memcpy(block, &size, sizeof size);
      const int kind = kind_pointed_to(p);  // of handles: a list of one
      if (kind >= 0 && p.dir == direction::in)
        std::memcpy(block, &w.handles[kind], sizeof w.handles[kind]);
      return pointer(p, block);
    }
    default:
      return integer(1);
  }
}

inline std::vector<velo_value> plausible(world& w, const function_info& f) {
  std::vector<velo_value> all;
  for (int i = 0; i < f.parameter_count; ++i) all.push_back(plausible(w, f.parameters[i]));
  return all;
}

}  // namespace velo::testing
