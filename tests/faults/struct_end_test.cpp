// Structs that end with their page, given to every function that takes one that begins with its
// size: refused or served, and never read behind the end that the size names, nor behind the size
// where it is out of range.
//
// Functions and operators come from the library's tables, so a new one is tested as soon as it
// exists. Their other arguments are the scene's objects, and zeros.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "capi/src/api_table.hpp"
#include "ops/call/call.hpp"
#include "ops/operator/registry.hpp"
#include "tests/faults/description.hpp"
#include "tests/faults/inside_parts.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

namespace {

using velo::core::direction;
using velo::core::function_info;
using velo::core::parameter_info;
using velo::core::thread_class;
using velo::core::value_type;
#include "abi/generated/functions.inc"

// A page behind which nothing can be read.
class guarded_page {
 public:
  guarded_page() : bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* mapped =
        mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    begin_ = static_cast<char*>(mapped);
    REQUIRE(mprotect(begin_ + bytes_, bytes_, PROT_NONE) == 0);
  }
  ~guarded_page() { munmap(begin_, 2 * bytes_); }
  guarded_page(const guarded_page&) = delete;
  guarded_page& operator=(const guarded_page&) = delete;

  // A struct of zeros with this size at the page's end, aligned to 8 as structs are; of a size out
  // of range the size alone.
  void* of_size(std::uint32_t size) const {
    const std::uint32_t there = size < sizeof size || size > bytes_ ? sizeof size : size;
    char* at = begin_ + bytes_ - (there + 7) / 8 * 8;
    std::memset(at, 0, there);
    std::memcpy(at, &size, sizeof size);
    return at;
  }

 private:
  const std::size_t bytes_;
  char* begin_ = nullptr;
};

// The sizes of structs that begin with one, by name; and of their fields those that point to such a
// struct.
struct sized_structs {
  sized_structs() {
    const json_tree root = library_description();
    std::size_t i = 0, k = 0;
    json_t *one = nullptr, *field = nullptr;
    const json_t* structs = json_object_get(root.get(), "structs");
    json_array_foreach(structs, i, one) {
      if (json_is_true(json_object_get(one, "sized")))
        sizes[text_in(one, "name")] =
            static_cast<std::uint32_t>(json_integer_value(json_object_get(one, "size")));
    }
    json_array_foreach(structs, i, one) {
      json_array_foreach(json_object_get(one, "fields"), k, field) {
        const std::string in = pointee(text_in(field, "type"));
        if (sizes.count(in) == 1) nested[text_in(one, "name") + "." + text_in(field, "name")] = in;
      }
    }
  }

  // "velo_pool_desc" of "const velo_pool_desc*"; "" of another type.
  static std::string pointee(std::string type) {
    for (const char* word : {"const ", "struct "})
      if (type.rfind(word, 0) == 0) type.erase(0, std::strlen(word));
    return !type.empty() && type.back() == '*' ? type.substr(0, type.size() - 1) : "";
  }

  std::map<std::string, std::uint32_t> sizes;
  std::map<std::string, std::string> nested;
};

// For every legal size up to the struct's own, those out of range, and larger ones that fit a page.
template <class Body>
void for_sizes(std::uint32_t whole, Body&& body) {
  for (std::uint32_t size = 4; size <= whole; size += 4) body(size);
  for (const std::uint32_t size : {0u, 1u, whole + 8, 4096u, 4097u, ~0u}) body(size);
}
bool is_out_of_range(std::uint32_t size) {
  return size <= 4 || size > 4096;
}

// At most 12 integers or pointers, and a double in a register of its own.
velo_status call(const function_info& function, const void* const* a) {
  using twelve = velo_status (*)(const void*, const void*, const void*, const void*, const void*,
                                 const void*, const void*, const void*, const void*, const void*,
                                 const void*, const void*, double);
  const auto entry = reinterpret_cast<twelve>(velo::capi::address_of(function));
  return entry(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], 0);
}

// Destroys an object by the function of its handle's name.
void destroy(const parameter_info& made, void* handle) {
  const std::string destroys = sized_structs::pointee(made.type) + "_destroy";
  const function_info* by = velo::capi::find_function(destroys.c_str());
  if (handle == nullptr || by == nullptr) return;
  const void* a[12] = {handle};
  call(*by, a);
}

}  // namespace

TEST_CASE("no function reads behind the end of a struct that names its size") {
  const sized_structs known;
  const guarded_page page;
  int tested = 0;
  for (const function_info& function : functions) {
    for (int at = 0; at < function.parameter_count; ++at) {
      const auto found = known.sizes.find(sized_structs::pointee(function.parameters[at].type));
      if (found == known.sizes.end()) continue;
      ++tested;
      for_sizes(found->second, [&](std::uint32_t size) {
        INFO(function.name << ", " << function.parameters[at].name << " of size " << size);
        scene all;
        alignas(64) static char zeros[1 << 16];
        alignas(64) char own[12][64] = {};  // of each parameter
        std::memset(zeros, 0, sizeof zeros);
        const void* a[12] = {};
        for (int i = 0; i < function.parameter_count; ++i) {
          const parameter_info& p = function.parameters[i];
          const bool points = p.kind == value_type::pointer || p.kind == value_type::string ||
                              p.kind == value_type::tensor || p.kind == value_type::ints;
          if (p.kind == value_type::handle) a[i] = all.handle_of(p.type);
          if (points) a[i] = p.dir == direction::out ? own[i] : zeros;
          if (known.sizes.count(sized_structs::pointee(p.type)) == 1 && p.nullable) a[i] = nullptr;
        }
        a[at] = page.of_size(size);
        const velo_status status = call(function, a);
        if (is_out_of_range(size)) CHECK(status != VELO_OK);
        for (int i = 0; i < function.parameter_count && status == VELO_OK; ++i)
          if (std::strcmp(function.parameters[i].ownership, "own") == 0)
            destroy(function.parameters[i], *reinterpret_cast<void**>(own[i]));
      });
    }
  }
  CHECK(tested > 60);
}

TEST_CASE("no operator reads behind the end of its arguments") {
  const guarded_page page;
  scene all;
  for (int i = 0; i < velo::ops::op_count(); ++i) {
    const auto op = static_cast<velo::ops::op_id>(i);
    const velo::ops::op_spec& spec = velo::ops::spec_of(op);
    for_sizes(spec.struct_size, [&](std::uint32_t size) {
      INFO(spec.function << " with arguments of size " << size);
      const velo_status status = velo::ops::call(op, all.now, page.of_size(size));
      CHECK(status != VELO_OK);
      if (size % 8 != 0 || is_out_of_range(size)) CHECK(status == VELO_ERR_STRUCT);
    });
  }
}

TEST_CASE("no function reads behind the end of a struct that another one points to") {
  const sized_structs known;
  const guarded_page page;
  using reader = velo_status (*)(scene&, void*);
  const std::map<std::string, reader> readers = {
      {"velo_context_desc.allocator",
       [](scene&, void* given) {
         velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
         velo_context made = nullptr;
         desc.allocator = static_cast<const velo_allocator*>(given);
         return velo_context_create(&desc, &made);
       }},
      {"velo_context_desc.parallel_for",
       [](scene&, void* given) {
         velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
         velo_context made = nullptr;
         desc.parallel_for = static_cast<const velo_parallel_for*>(given);
         return velo_context_create(&desc, &made);
       }},
      {"velo_plugin_desc.kernels", nullptr},  // of velo_kernel_register, which is a function
      {"velo_group_desc.host",
       [](scene& s, void* given) {
         velo_group_desc desc = VELO_GROUP_DESC_INIT;
         velo_group made = nullptr;
         desc.transport = VELO_TRANSPORT_HOST;
         desc.rank = 0;
         desc.size = 2;
         desc.host = static_cast<const velo_host_collectives*>(given);
         return velo_group_create(s.context, &desc, &made);
       }},
      {"velo_schedule_desc.costs",
       [](scene&, void* given) {
         velo_schedule_desc desc = desc_of(VELO_SCHEDULE_AUTO, {2, 2});
         desc.costs = static_cast<const velo_schedule_costs*>(given);
         velo_schedule made = nullptr;
         const velo_status status = velo_schedule_create(&desc, &made);
         velo_schedule_destroy(made);
         return status;
       }},
      {"velo_collective_desc.reduction",
       [](scene& s, void* given) {
         velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
         desc.kind = VELO_COLLECTIVE_ALL_REDUCE;
         desc.reduction = static_cast<const velo_reduction*>(given);
         velo_collective made = nullptr;
         return velo_collective_create(s.groups[0], &desc, &made);
       }},
      {"velo_executor_desc.link",
       [](scene& s, void* given) {
         velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
         desc.link = static_cast<const velo_link*>(given);
         velo_executor made = nullptr;
         return velo_executor_create(s.context, s.schedule, &desc, &made);
       }},
      {"velo_executor_desc.validation",
       [](scene& s, void* given) {
         velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
         desc.validation = static_cast<const velo_executor_validation*>(given);
         velo_executor made = nullptr;
         return velo_executor_create(s.context, s.schedule, &desc, &made);
       }},
      {"velo_recompute_desc.allocator",
       [](scene&, void* given) {
         velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
         desc.allocator = static_cast<const velo_allocator*>(given);
         velo_recompute made = nullptr;
         return velo_recompute_create(&desc, &made);
       }},
      {"velo_adaptor_desc.upstream",
       [](scene&, void* given) {
         velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
         desc.upstream = static_cast<const velo_allocator*>(given);
         velo_adaptor made = nullptr;
         return velo_adaptor_create(&desc, &made);
       }},
  };
  for (const auto& [field, type] : known.nested) {
    INFO(field);
    REQUIRE(readers.count(field) == 1);
    const reader read = readers.at(field);
    if (read == nullptr) continue;
    for_sizes(known.sizes.at(type), [&](std::uint32_t size) {
      INFO("size " << size);
      scene all;
      const velo_status status = read(all, page.of_size(size));
      if (is_out_of_range(size)) CHECK(status == VELO_ERR_STRUCT);
    });
  }
}

TEST_CASE("a shape that is to be filled is not read behind its end") {
  const guarded_page page;
  scene all;
  static float numbers[4] = {};
  static const std::int64_t four[] = {4};
  const velo_tensor x = view_of(numbers, f32, four);
  const velo_named_value inputs[2] = {{"a", of(x)}, {"b", of(x)}};
  for_sizes(sizeof(velo_shape), [&](std::uint32_t size) {
    INFO("size " << size);
    std::int64_t count = 0;
    const velo_status status = velo_op_infer(
        all.context, "add", inputs, 2, static_cast<velo_shape*>(page.of_size(size)), 1, &count);
    if (is_out_of_range(size)) CHECK(status == VELO_ERR_STRUCT);
    if (size == sizeof(velo_shape)) CHECK(status == VELO_OK);
  });
}
