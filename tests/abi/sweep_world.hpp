// Arguments that the sweep gives to functions: a live handle of every kind, and values that look
// plausible to somebody who read the header without knowing what it means.
//
// Functions and parameters come from the generated table. Each call gets a
// world of its own, so that it may destroy anything.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/signature.hpp"
#include "tests/calls/scene.hpp"
#include "tests/capi/values.hpp"
#include "velo/velo.h"

namespace velo::testing {

using core::direction;
using core::function_info;
using core::parameter_info;
using core::thread_class;
using core::value_type;
#include "abi/generated/functions.inc"

inline constexpr const char* kinds[] = {
#define VELO_HANDLE(name, article, order) "velo_" #name,
#include "abi/generated/handles.inc"
#undef VELO_HANDLE
};
inline constexpr int kind_count = sizeof kinds / sizeof kinds[0];

// The library's self-description, read once.
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

// A scene whose objects have been used, and memory that plausible pointers may point to.
class sweep_world : public scene {
 public:
  sweep_world() {
    must(velo_event_record(event, queue));
    for (int k = 0; k < kind_count; ++k) {
      handles[k] = handle_of(kinds[k]);
      if (handles[k] == nullptr) handles[k] = create(kinds[k]);  // a module beyond the tree's
    }
    std::memset(memory_, 0, sizeof memory_);
    elements_ = reinterpret_cast<float*>(memory_ + 1024);
    const std::int64_t shape[2] = {4, 4};
    std::memcpy(memory_ + 512, shape, sizeof shape);
    tensor_ = new (memory_ + 256)
        velo_tensor(view_of(elements_, f32, reinterpret_cast<std::int64_t*>(memory_ + 512), 2));
    blocks_.reserve(16);
  }

  void* handles[kind_count] = {};

  const velo_tensor* tensor() const { return tensor_; }
  void* zeros(std::size_t bytes) {
    blocks_.push_back(std::vector<std::uint64_t>(bytes / 8, 0));
    return blocks_.back().data();
  }
  void take_back() { blocks_.clear(); }  // the memory that a call was given
  bool alive() const {
    velo_stream stream = nullptr;
    return velo_context_stream(context, &stream) == VELO_OK && stream == now;
  }

 private:
  void* create(const std::string& kind) const {
    void* made = nullptr;
    const velo_value values[2] = {testing::handle(context), testing::pointer(&made)};
    must(velo_invoke((kind + "_create").c_str(), values, 2, nullptr));
    return made;
  }

  alignas(64) unsigned char memory_[4096];
  velo_tensor* tensor_;
  float* elements_;
  std::vector<std::vector<std::uint64_t>> blocks_;
};

// The type that a pointer points to, without const.
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

// A value that somebody might pass who read the header without knowing what it means.
inline velo_value plausible(sweep_world& w, const parameter_info& p) {
  switch (p.kind) {
    case value_type::handle:
      return pointer(p, w.handles[kind_of(p)]);
    case value_type::string:
      return pointer(p, plausible_string(p));
    case value_type::tensor:
      return pointer(p, w.tensor());
    case value_type::f64:
      return real(1);
    case value_type::ints:
      return pointer(p, w.zeros(4096));
    case value_type::pointer: {
      const bool text = std::strcmp(p.type, "char*") == 0;  // any capacity may be stated
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

inline std::vector<velo_value> plausible(sweep_world& w, const function_info& f) {
  std::vector<velo_value> all;
  for (int i = 0; i < f.parameter_count; ++i) all.push_back(plausible(w, f.parameters[i]));
  return all;
}

}  // namespace velo::testing
