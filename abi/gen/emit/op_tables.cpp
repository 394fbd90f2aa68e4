// Tables that ops/ compiles in: numbers, field tables, definitions and C entries of all operators.
#include <cmath>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

const char* const note =
    "// Generated from abi/spec: change that and build the target `generate`.\n";

std::string dtype_bits(const op_field& f) {
  std::vector<std::string> bits;
  for (const std::string& d : f.dtypes) bits.push_back("dtype_" + d);
  return bits.empty() ? "0" : join(bits, " | ");
}

std::string alias_bits(const op& o, const op_field& f) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < o.fields.size() && i < 32; ++i) {
    for (const std::string& alias : f.alias) {
      if (o.fields[i].name == alias) bits |= std::uint32_t{1} << i;
    }
  }
  return std::to_string(bits) + "u";
}

std::string emit_field(const op& o, const op_field& f) {
  const bool named = f.type == kind::enumeration;
  const std::string type = f.type == kind::boolean ? "boolean" : kind_name(f.type);
  const std::string handle = f.handle.empty() ? "nullptr" : "&core::kinds::" + f.handle.substr(5);
  std::string out =
      "    {" + quote(f.name) + ",\n     " + quote(f.doc) + ",\n     field_kind::" + type;
  out += ", " + handle;
  for (const bool is : {f.read, f.output, f.optional, f.strided}) out += is ? ", true" : ", false";
  out += ", " + dtype_bits(f) + ", " + alias_bits(o, f) + ", " + std::to_string(f.default_int) +
         ", " + real(f.default_real);
  // Operators compute in float32, unless the spec says otherwise.
  const std::string bound = f.type == kind::f64 ? "largest_float" : "unbounded";
  out += ", " + (f.has_minimum ? real(f.minimum) : "-" + bound);
  out += ", " + (f.has_maximum ? real(f.maximum) : bound);
  out += named ? ", " + f.enumeration + "_enumerators, sizeof " + f.enumeration +
                     "_enumerators / sizeof(enumerator)"
               : std::string(", nullptr, 0");
  return out + "},\n";
}

std::string emit_bounds(const op& o) {
  if (o.bounds.empty()) return "";
  std::string out = "constexpr error_bound " + o.name + "_bounds[] = {";
  for (const error_bound& b : o.bounds) {
    out += "\n    {dtype_" + b.dtype + ", " + (b.mixed ? "true" : "false") + ", " +
           real(b.absolute) + ", " + real(b.relative) + ", " + real(b.largest) + "},";
  }
  return out + "\n};\n";
}

std::string emit_spec(const family& home, const op& o) {
  std::string out = "    {" + quote(o.name) + ", " + quote("velo_" + o.name) + ", " +
                    quote(home.name) + ",\n     ";
  out += (o.gradient_of.empty() ? "nullptr" : quote(o.gradient_of)) + ", " +
         quote(join(o.aliases, ",")) + ",\n     ";
  out += quote(join(o.doc, "\n")) + ",\n     " + quote(o.source) + ",\n     " + quote(o.accuracy) +
         ",\n     ";
  out += (o.bounds.empty() ? "nullptr" : o.name + "_bounds") + ", " +
         std::to_string(o.bounds.size()) + ", " + real(o.least_input) + ", " +
         (std::isinf(o.most_input) ? "unbounded" : real(o.most_input)) + ", " + quote(o.bytes) +
         ",\n     " + std::to_string(o.since) + ", " + o.name + "_fields, ";
  return out + std::to_string(o.fields.size()) + ", " + std::to_string(8 + 8 * o.fields.size()) +
         "},\n";
}

}  // namespace

std::string emit_op_ids(const spec& s) {
  std::string out = std::string("// Numbers of the operators, for the inside of an enum.\n") + note;
  for (const family& f : s.families) {
    out += "// " + f.name + "\n";
    for (const op& o : f.ops) out += o.name + ",\n";
  }
  return out;
}

std::string emit_op_table(const spec& s) {
  std::string out =
      "// Field tables of all operators, in the order of op_ids.inc, for the inside of a namespace "
      "that sees\n"
      "// ops/operator/spec.hpp and the constants `unbounded` (infinity) and `largest_float`.\n";
  out += note;
  for (const family& f : s.families) {
    out += "\n// ---- " + f.name + "\n";
    for (const enumeration& e : f.enums) {
      out += "constexpr enumerator " + e.name + "_enumerators[] = {\n";
      for (const enumerator& v : e.values)
        out += "    {" + quote(v.name) + ", " + std::to_string(v.value) + "},\n";
      out += "};\n";
    }
    for (const op& o : f.ops) {
      out += "constexpr field " + o.name + "_fields[] = {\n";
      for (const op_field& field : o.fields) out += emit_field(o, field);
      out += "};\n" + emit_bounds(o);
    }
  }
  out += "\nconstexpr op_spec specs[] = {\n";
  for (const family& f : s.families) {
    out += "    // ---- " + f.name + "\n";
    for (const op& o : f.ops) out += emit_spec(f, o);
  }
  return out + "};\n";
}

std::string emit_op_definitions(const spec& s) {
  std::string out =
      "// What each operator's own file defines, and all of them in the order of op_ids.inc; for "
      "the inside of\n"
      "// namespace velo::ops after ops/operator/definition.hpp.\n";
  out += note;
  for (const family& f : s.families) {
    out += "// " + f.name + "\n";
    for (const op& o : f.ops) out += "extern const operator_def " + o.name + "_operator;\n";
  }
  out += "\nconstexpr const operator_def* definitions[] = {\n";
  for (const family& f : s.families) {
    out += "    // " + f.name + "\n";
    for (const op& o : f.ops) out += "    &" + o.name + "_operator,\n";
  }
  return out + "};\n";
}

std::string emit_op_entries(const spec& s) {
  std::string out =
      "// The C entry of every operator; after velo/api.h and ops/call/call.hpp, at namespace "
      "scope.\n";
  out += note;
  for (const family& f : s.families) {
    out += "\n// velo/ops_" + f.name + ".h\n";
    for (const op& o : f.ops) {
      out += "velo_status velo_" + o.name + "(velo_stream stream, const velo_" + o.name +
             "_args* args) {\n";
      out += "  return velo::ops::call(velo::ops::op_id::" + o.name + ", stream, args);\n}\n";
    }
  }
  return out;
}

}  // namespace velo::gen
