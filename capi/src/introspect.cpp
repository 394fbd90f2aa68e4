// Entries of velo/introspect.h.
#include "velo/introspect.h"

#include <dlfcn.h>

#include "capi/src/api_table.hpp"
#include "capi/src/boundary.hpp"
#include "core/handle/guard.hpp"
#include "core/invoke.hpp"
#include "core/stream/stream.hpp"
#include "ops/by_name/by_name.hpp"
#include "ops/by_name/callee.hpp"
#include "ops/call/cost.hpp"
#include "ops/call/counters.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// velo_shape, velo_cost and velo_op_counts of ABI 1.0
constexpr std::uint32_t shape_size = 112, cost_size = 48, counts_size = 56;
static_assert(sizeof(velo_shape) >= shape_size && sizeof(velo_cost) >= cost_size &&
              sizeof(velo_op_counts) >= counts_size);

std::uint32_t abi_offered() {
  return capi::api_table().abi;
}

// A file name may be long, so it goes into the longest field of the record.
[[noreturn]] void refuse_abi(const char* wanted) {
  Dl_info where{};
  const bool found = dladdr(reinterpret_cast<const void*>(&velo_get_api), &where) != 0;
  fail(VELO_ERR_ABI, "needed", wanted,
       text("ABI %u.%u of release %d.%d.%d", abi_offered() / 100, abi_offered() % 100,
            VELO_RELEASE_MAJOR, VELO_RELEASE_MINOR, VELO_RELEASE_PATCH),
       found ? where.dli_fname : "");
}

ops::op_id op_named(const char* name) {
  ops::op_id op{};
  if (!ops::find_op(&capi::required(name, "op"), op))
    fail(VELO_ERR_NOT_FOUND, "op", "an operator's name; velo_op_name lists them",
         text("\"%s\"", name));
  return op;
}

// Writes the outputs' shapes to the caller's array. The first entry's struct_size is the size of
// every entry.
class shape_writer {
 public:
  shape_writer(velo_shape* shapes, std::int64_t capacity)
      : at_(reinterpret_cast<char*>(shapes)), capacity_(capacity) {
    if (capacity < 0) fail(VELO_ERR_ARGUMENT, "capacity", "0 or more", core::number(capacity));
    if (capacity > 0) stride_ = capi::struct_size(shapes, shape_size, "shapes");
  }
  void operator()(std::int64_t index, const ops::field& f, const ops::output_shape& from) {
    if (index >= capacity_) return;
    velo_shape made{};
    made.ndim = from.rank;
    made.dtype = from.dtype;
    for (int d = 0; d < from.rank; ++d) made.sizes[d] = from.sizes[d];
    core::copy_text(made.name, sizeof made.name, f.name);
    made.struct_size = stride_;
    std::memcpy(at_ + index * stride_, &made, std::min<std::size_t>(stride_, sizeof made));
  }

 private:
  char* at_;
  std::int64_t capacity_;
  std::uint32_t stride_ = 0;
};

}  // namespace

extern "C" {

velo_status velo_get_api(uint32_t needed, uint64_t table_size, const struct velo_api** api) {
  return core::guard("velo_get_api", [&] {
    capi::required(api, "api");
    if (needed / 100 != abi_offered() / 100 || needed > abi_offered())
      refuse_abi(text("ABI %u.%u", needed / 100, needed % 100));
    if (table_size > sizeof(velo_api))
      refuse_abi(core::concat("a function table of ", table_size, " bytes, from newer headers"));
    *api = &capi::api_table();
  });
}

velo_status velo_version(int32_t* major, int32_t* minor, int32_t* patch, uint32_t* abi) {
  if (major != nullptr) *major = VELO_RELEASE_MAJOR;
  if (minor != nullptr) *minor = VELO_RELEASE_MINOR;
  if (patch != nullptr) *patch = VELO_RELEASE_PATCH;
  if (abi != nullptr) *abi = abi_offered();
  return VELO_OK;
}

velo_status velo_capability_query(velo_capability capability, int32_t* available) {
  return core::guard("velo_capability_query", [&] {
    capi::required(available, "available");
    switch (capability) {
      case VELO_CAP_CLOSURES:
        *available = core::can_make_functions() ? 1 : 0;
        return;
      default:
        fail(VELO_ERR_ARGUMENT, "capability", "a velo_capability", text("%d", capability));
    }
  });
}

velo_status velo_describe(char* buffer, uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_describe", [&] {
    capi::write_text(ops::describe_library().c_str(), buffer, capacity, needed);
  });
}

velo_status velo_op_count(int64_t* count) {
  return core::guard("velo_op_count", [&] { capi::required(count, "count") = ops::op_count(); });
}

velo_status velo_op_name(int64_t index, const char** name) {
  return core::guard("velo_op_name", [&] {
    capi::required(name, "name");
    if (index < 0 || index >= ops::op_count())
      fail(VELO_ERR_ARGUMENT, "index", text("an index in [0, %d)", ops::op_count()),
           core::number(index));
    *name = ops::spec_of(static_cast<ops::op_id>(index)).name;
  });
}

velo_status velo_op_describe(const char* op, char* buffer, uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_op_describe", [&] {
    capi::write_text(ops::describe_op(op_named(op)).c_str(), buffer, capacity, needed);
  });
}

velo_status velo_op_call(velo_stream stream, const char* op, const velo_named_value* values,
                         int64_t count) {
  return core::guard("velo_op_call", [&] {
    const core::context& owner = core::use<core::stream>(stream, "stream").owner();
    const ops::callee found(owner, op);
    ops::args_block block;
    const ops::field_set given = ops::assign(found.spec(), values, count, block);
    found.execute(block, given, stream);
  });
}

velo_status velo_op_infer(velo_context context, const char* op, const velo_named_value* values,
                          int64_t count, velo_shape* shapes, int64_t capacity, int64_t* outputs) {
  return core::guard("velo_op_infer", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    const ops::op_id found = ops::callee(owner, op).own();
    capi::required(outputs, "outputs");
    ops::args_block block;
    ops::assign(ops::spec_of(found), values, count, block);
    shape_writer writer(shapes, capacity);
    const auto begin = [&](std::int64_t all) {
      *outputs = all;
      if (capacity < all)
        fail(VELO_ERR_ARGUMENT, "capacity", core::concat("at least ", all, ", the outputs"),
             core::number(capacity));
    };
    ops::infer_outputs(found, block, owner, begin, writer);
  });
}

velo_status velo_op_explain(velo_context context, const char* op, const velo_named_value* values,
                            int64_t count, char* buffer, uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_op_explain", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    const ops::callee found(owner, op);
    ops::args_block block;
    ops::assign(found.spec(), values, count, block);
    capi::write_text(found.explain(block, owner).c_str(), buffer, capacity, needed);
  });
}

velo_status velo_op_cost(velo_context context, const char* op, const velo_named_value* values,
                         int64_t count, velo_cost* cost) {
  return core::guard("velo_op_cost", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    const ops::op_id found = ops::callee(owner, op).own();
    capi::struct_size(cost, cost_size, "cost");
    ops::args_block block;
    ops::assign(ops::spec_of(found), values, count, block);
    const ops::op_cost of = ops::cost_of(found, block, owner);
    capi::write_struct(cost, cost_size, "cost",
                       velo_cost{0, 0, of.flops, of.flops_visible, of.bytes_read, of.bytes_written,
                                 ops::least_seconds(of, owner)});
  });
}

velo_status velo_op_get_counts(velo_context context, const char* op, velo_op_counts* counts) {
  return core::guard("velo_op_get_counts", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    const ops::op_counters& counters = owner.attached<ops::op_counters>();
    const ops::op_counts of = op == nullptr ? counters.all() : counters.of(op_named(op));
    capi::write_struct(counts, counts_size, "counts",
                       velo_op_counts{0, 0, of.calls, of.flops_recorded, of.flops_traversed,
                                      of.flops_visible, of.bytes_read, of.bytes_written, of.seconds,
                                      of.least_seconds, of.checked, of.not_judged});
  });
}

velo_status velo_op_reset_counts(velo_context context) {
  return core::guard("velo_op_reset_counts", [&] {
    core::use<core::context>(context, "context").attached<ops::op_counters>().reset();
  });
}

velo_status velo_invoke(const char* function, const velo_value* values, int64_t count,
                        velo_value* result) {
  velo_status returned = VELO_OK;
  const velo_status converted = core::guard("velo_invoke", [&] {
    const core::function_info* found = capi::find_function(&capi::required(function, "function"));
    if (found == nullptr)
      fail(VELO_ERR_NOT_FOUND, "function", "the name of an exported function",
           text("\"%s\"", function));
    returned = core::invoke(*found, capi::address_of(*found), values, count, result);
  });
  return converted != VELO_OK ? converted : returned;
}
}
