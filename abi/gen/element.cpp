// Elements (element.hpp).
#include "abi/gen/element.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "abi/gen/text.hpp"
#include "core/simd/scalar.hpp"

namespace velo::gen {

const element& element_of(const std::string& dtype) {
  static const element all[] = {
      {"f32", "float", "FLOAT", 32},      {"f64", "double", "FLOAT", 64},
      {"bf16", "uint16_t", "BFLOAT", 16}, {"f16", "uint16_t", "FLOAT", 16},
      {"i32", "int32_t", "INT", 32},      {"i64", "int64_t", "INT", 64},
      {"i8", "int8_t", "INT", 8},         {"u8", "uint8_t", "UINT", 8}};
  const element* at = all;
  while (dtype != at->dtype) ++at;
  return *at;
}

bool is_bfloat16(const element& e) {
  return std::strcmp(e.code, "BFLOAT") == 0;
}

std::string literal(double value, const element& e) {
  if (e.bits == 16) {
    const auto single = static_cast<float>(value);
    char text[8];
    std::snprintf(text, sizeof text, "0x%04x",
                  is_bfloat16(e) ? simd::to_bf16(single).bits : simd::to_f16(single).bits);
    return text;
  }
  if (std::strcmp(e.code, "FLOAT") != 0) return std::to_string(static_cast<std::int64_t>(value));
  return e.bits == 32 && value != std::floor(value) ? real(value) + "f" : real(value);
}

const example_value* find(const std::vector<example_value>& values, const std::string& field) {
  for (const example_value& v : values) {
    if (v.field == field) return &v;
  }
  return nullptr;
}

}  // namespace velo::gen
