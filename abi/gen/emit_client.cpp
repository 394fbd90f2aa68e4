// client_operators.c: the frozen client's calls of the operators, one function for every example
// with a known result. What it includes lies in abi/client/.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "abi/gen/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

struct element {
  const char *dtype, *c_type, *code;
  int bits;
};

const element& element_of(const std::string& dtype) {
  static const element all[] = {{"f32", "float", "FLOAT", 32},      {"f64", "double", "FLOAT", 64},
                                {"bf16", "uint16_t", "BFLOAT", 16}, {"i32", "int32_t", "INT", 32},
                                {"i64", "int64_t", "INT", 64},      {"u8", "uint8_t", "UINT", 8}};
  const element* at = all;
  while (dtype != at->dtype) ++at;
  return *at;
}

std::string literal(double value, const element& e) {
  if (std::strcmp(e.code, "BFLOAT") == 0) {  // examples in bfloat16 are exact: cut, not rounded
    const auto narrow = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    char text[8];
    std::snprintf(text, sizeof text, "0x%04x", bits >> 16);
    return text;
  }
  if (std::strcmp(e.code, "FLOAT") != 0) return std::to_string(static_cast<std::int64_t>(value));
  return e.bits == 32 && value != std::floor(value) ? real(value) + "f" : real(value);
}

// The memory of a tensor with what the call finds in it, and the tensor.
std::string declare_tensor(const example_value& v, const example_value* before) {
  const element& e = element_of(v.dtype);
  std::vector<std::string> numbers, sizes;
  if (before != nullptr) {
    for (const double value : before->values) numbers.push_back(literal(value, e));
  } else {
    numbers.assign(v.values.size(), "77");  // an output that is not written does not look right
  }
  for (const std::int64_t size : v.shape) sizes.push_back(std::to_string(size));
  if (sizes.empty()) sizes = {"1"};
  const std::string data = v.field + "_data";
  return arrange("  " + std::string(e.c_type) + " " + data + "[" + std::to_string(v.values.size()) +
                     "] = {",
                 numbers, "};\n") +
         arrange("  const velo_tensor " + v.field + "_tensor = TENSOR(",
                 {data, std::string("VELO_DTYPE_") + e.code, std::to_string(e.bits),
                  std::to_string(v.shape.size()), join(sizes, ", ")},
                 ");\n");
}

const example_value* find(const std::vector<example_value>& values, const std::string& field) {
  for (const example_value& v : values) {
    if (v.field == field) return &v;
  }
  return nullptr;
}

// The spec's bound of an output of this example; of integers, which have none, exactness.
std::string bound_of(const op& o, const example& e, const example_value& output) {
  bool mixed = false;
  for (const auto* values : {&e.in, &e.out}) {
    for (const example_value& v : *values) mixed = mixed || v.dtype == "bf16" || v.dtype == "f16";
  }
  error_bound found;
  for (const error_bound& b : o.bounds) {
    if (b.dtype == output.dtype && (!b.mixed || mixed)) found = b;
  }
  return "BOUND(" + real(found.absolute) + ", " + real(found.relative) + ", " +
         real(found.largest) + ")";
}

std::string call(const op& o, const example& e, const std::string& name) {
  std::string tensors, sets, checks;
  for (const op_field& f : o.fields) {
    const example_value *in = find(e.in, f.name), *out = find(e.out, f.name);
    const example_value* value = out != nullptr ? out : in;
    if (value == nullptr) continue;
    sets += "  args." + f.name + " = ";
    if (!value->literal.empty()) {
      sets += value->literal + ";\n";
    } else if (f.type == kind::ints) {
      std::vector<std::string> items;
      for (const std::int64_t item : value->list) items.push_back(std::to_string(item));
      const std::string count = std::to_string(items.size());
      tensors += "  const velo_ints " + f.name + "_list = {(const int64_t[]){" + join(items, ", ") +
                 "}, " + count + "};\n";
      sets += "&" + f.name + "_list;\n";
    } else {
      tensors += declare_tensor(*value, in);
      sets += "&" + f.name + "_tensor;\n";
    }
    if (out == nullptr) continue;
    std::vector<std::string> wanted = {f.name, bound_of(o, e, *out)};
    for (const double number : out->values) wanted.push_back(real(number));
    checks += arrange("  HOLDS(", wanted, ");\n");
  }
  const std::string args =
      "velo_" + o.name + "_args args = " + upper("velo_" + o.name + "_args_init");
  return "\nstatic void " + name + "(velo_stream stream) {\n" + tensors + "  " + args + ";\n" +
         sets + "  WORKS(velo_" + o.name + "(stream, &args));\n" + checks + "}\n";
}

}  // namespace

std::string emit_client(const spec& s) {
  std::string calls,
      out = comment({"Every operator of this release on numbers small enough to check by hand: the "
                     "examples of abi/spec with a known result."}) +
            "#include \"client.h\"\n";
  for (const op* o : s.ops()) {
    int number = 0;
    for (const example& e : o->examples) {
      if (e.out.empty()) continue;
      const std::string name = o->name + "_" + std::to_string(++number);
      out += call(*o, e, name);
      calls += "  " + name + "(stream);\n";
    }
  }
  return out + "\nvoid client_operators(velo_stream stream) {\n" + calls + "}\n";
}

}  // namespace velo::gen
