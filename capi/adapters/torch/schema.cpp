// Schemas as torch's parser reads them; see the header.
#include "capi/adapters/torch/schema.hpp"

#include <charconv>

namespace velo::adapters {
namespace {

bool holds_tensors(const field& f) {
  return f.kind == field_kind::tensor || f.kind == field_kind::tensors;
}

// Outputs, and what an operator that can accumulate reads for no other reason.
bool is_written_only(const field& f, bool accumulates) {
  return holds_tensors(f) && f.output && (!f.input || accumulates);
}

const char* type_of(const field& f) {
  switch (f.kind) {
    case field_kind::tensor:
      return "Tensor";
    case field_kind::tensors:
      return "Tensor[]";
    case field_kind::f64:
      return "float";
    case field_kind::boolean:
      return "bool";
    case field_kind::ints:
      return "int[]";
    case field_kind::text:
      return "str";
    case field_kind::handle:
    case field_kind::i64:
    case field_kind::enumeration:
      return "int";
  }
  return "";
}

std::string initial_of(const field& f) {
  if (in_cell(f)) return "None";
  if (f.kind == field_kind::boolean) return f.initial != 0 ? "True" : "False";
  if (f.kind != field_kind::f64) return std::to_string(f.initial);
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, f.initial_real).ptr};
}

// Tensors, lists and texts that are not optional have no default.
bool is_required(const field& f) {
  return !f.optional && (holds_tensors(f) || f.kind == field_kind::ints ||
                         f.kind == field_kind::text || f.kind == field_kind::handle);
}

// "Tensor(a!)? rstd": a tensor that is written has a letter of its own.
std::string argument_of(const field& f, char& letter) {
  std::string type = type_of(f);
  if (holds_tensors(f) && f.output) type.insert(6, std::string("(") + letter++ + "!)");
  return type + (in_cell(f) ? "? " : " ") + f.name;
}

}  // namespace

torch_plan plan_of(const op_info& op, torch_overload overload) {
  torch_plan out;
  const bool accumulates = find_field(op, "accumulate") >= 0;
  const bool functional = overload != torch_overload::out;
  bool optional_result = false;
  for (int f = 0; f < op.field_count; ++f) {
    const field& it = op.fields[f];
    if (functional && it.kind == field_kind::handle) {
      if (!it.optional) return {};
    } else if (functional && is_written_only(it, accumulates)) {
      if (it.kind == field_kind::tensors) return {};
      if (it.optional && overload == torch_overload::plain) continue;
      out.results[out.result_count++] = f;
      optional_result = optional_result || it.optional;
    } else if (!functional || it.name != std::string_view("accumulate")) {
      out.arguments[out.argument_count++] = f;
      out.writes_arguments = out.writes_arguments || it.output;
    }
  }
  out.exists = overload != torch_overload::full || optional_result;
  return out;
}

std::string torch_name(const op_info& op, torch_overload overload) {
  constexpr const char* suffix[torch_overload_count] = {"", ".full", ".out"};
  return std::string(op.name) + suffix[static_cast<int>(overload)];
}

std::string torch_schema(const op_info& op, torch_overload overload, const torch_plan& plan) {
  int last_required = -1;
  for (int a = 0; a < plan.argument_count; ++a) {
    if (is_required(op.fields[plan.arguments[a]])) last_required = a;
  }
  std::string out = torch_name(op, overload) + "(";
  char letter = 'a';
  for (int a = 0; a < plan.argument_count; ++a) {
    const field& f = op.fields[plan.arguments[a]];
    out += (a > 0 ? ", " : "") + argument_of(f, letter);
    if (a > last_required) out += "=" + initial_of(f);
  }
  out += ") -> ";
  if (plan.result_count == 1) return out + "Tensor";
  for (int r = 0; r < plan.result_count; ++r) out += r == 0 ? "(Tensor" : ", Tensor";
  return out + (plan.result_count == 0 ? "()" : ")");
}

}  // namespace velo::adapters
