// The table of element types, and names of types and devices.
#include "core/tensor/dtype.hpp"

#include <cstdio>

namespace velo::core {
namespace {

struct known_dtype {
  velo_dtype type;
  std::uint32_t bit;  // 0: a tensor may have this type, but no operator takes it
  const char* name;
};

constexpr known_dtype known_dtypes[] = {
    {f32, dtype_f32, "float32"},
    {bf16, dtype_bf16, "bfloat16"},
    {{VELO_DTYPE_FLOAT, 64, 1}, dtype_f64, "float64"},
    {f16, dtype_f16, "float16"},
    {i32, dtype_i32, "int32"},
    {i64, dtype_i64, "int64"},
    {u8, dtype_u8, "uint8"},
    {{VELO_DTYPE_BOOL, 8, 1}, dtype_bool, "bool"},
    {i8, dtype_i8, "int8"},
    {{VELO_DTYPE_UINT, 64, 1}, dtype_u64, "uint64"},
    {i4, dtype_i4, "int4"},
    {{VELO_DTYPE_INT, 16, 1}, 0, "int16"},
    {{VELO_DTYPE_UINT, 16, 1}, 0, "uint16"},
    {{VELO_DTYPE_UINT, 32, 1}, 0, "uint32"},
};

const known_dtype* find(velo_dtype type) {
  for (const known_dtype& known : known_dtypes) {
    if (known.type == type) return &known;
  }
  return nullptr;
}

// DLPack's kinds of types, by code; nullptr: not in DLPack 1.0.
const char* kind_name(std::uint8_t code) {
  constexpr const char* kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  return code < sizeof kinds / sizeof kinds[0] ? kinds[code] : nullptr;
}

}  // namespace

bool is_known(velo_dtype type) {
  return find(type) != nullptr;
}

std::uint32_t dtype_bit_of(velo_dtype type) {
  const known_dtype* known = find(type);
  return known == nullptr ? 0 : known->bit;
}

text dtype_name(velo_dtype type) {
  if (const known_dtype* known = find(type)) return text("%s", known->name);
  const char* kind = kind_name(type.code);
  if (kind == nullptr)
    return text("type code %d of %d bits, lanes %d", type.code, type.bits, type.lanes);
  if (type.lanes == 1) return text("%s%d", kind, type.bits);
  return text("%s%dx%d", kind, type.bits, type.lanes);  // vectors, as in DLPack: "float32x4"
}

text dtype_names(std::uint32_t bits) {
  text out("%s", "");
  std::size_t used = 0;
  for (const known_dtype& known : known_dtypes) {
    if ((bits & known.bit) == 0) continue;
    bits &= ~known.bit;
    const char* between = used == 0 ? "" : bits == 0 ? " or " : ", ";
    used += static_cast<std::size_t>(
        std::snprintf(out.buffer + used, sizeof out.buffer - used, "%s%s", between, known.name));
  }
  return out;
}

text device_name(velo_device device) {
  constexpr struct {
    std::int32_t type;
    const char* name;
  } devices[] = {{1, "cpu"},        {2, "cuda"},     {3, "cuda_host"},     {4, "opencl"},
                 {7, "vulkan"},     {8, "metal"},    {9, "vpi"},           {10, "rocm"},
                 {11, "rocm_host"}, {12, "ext_dev"}, {13, "cuda_managed"}, {14, "oneapi"},
                 {15, "webgpu"},    {16, "hexagon"}};
  for (const auto& known : devices) {
    if (known.type == device.type) return text("device %s:%d", known.name, device.id);
  }
  return text("device %d:%d", device.type, device.id);
}

}  // namespace velo::core
