// The pieces (reference_parts.hpp).
#include "abi/gen/emit/reference_parts.hpp"

#include "abi/gen/layout.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {

const char* const about_threads =
    "Thread classes: *any*: from any thread at any time; *per-handle*: not twice at once for one "
    "handle; *per-stream*: calls on one stream take turns, others run beside them. \"May wait\" "
    "marks calls that can block on work of others.\n";

const char* const about_ownership =
    "Ownership: *borrow*: read during the call only; *copy*: copied before the call returns; "
    "*keep*: must live until the work is done; *own*: the caller owns it now and ends it; *take*: "
    "the call ends it; *static*: lives as long as the library; *buffer*: the caller's memory, "
    "asked for its size with NULL and capacity 0.\n";

const char* const about_errors =
    "Every call that can fail returns one of these; `velo_last_error` gives the record with "
    "function, argument, what was expected and what came. After a validation error outputs are "
    "untouched, after a failure during the work they are undefined.\n";

const char* const about_handles = "Typed pointers to structs that are never defined.\n";

const char* const about_args =
    "Each is `velo_<name>(stream, args)`; each args struct begins with `struct_size` and "
    "`reserved` and then has one 8-byte word per field in the order of its table, starting at byte "
    "8.";

const char* const about_bounds =
    "how far an output of a dtype may be from the exact value, as the sum of an absolute part, a "
    "share of the value and a share of the largest magnitude in the same output (which for sums "
    "holds for up to 4096 terms of either sign; the words before hold always). Beside the sum "
    "stands "
    "the rounding of a denormal: 2^-149 in float32, 2^-133 in bfloat16, where kernels that round "
    "in "
    "hardware may give 0. A mixed call has a floating tensor narrower than float32.";

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(const std::string& text) {
  return "`" + cell(text) + "`";
}

std::string row(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string head(const std::vector<std::string>& cells) {
  std::string out = row(cells) + "|";
  for (std::size_t i = 0; i < cells.size(); ++i) out += "---|";
  return out + "\n";
}

std::string code_list(const std::vector<std::string>& items, const std::string& prefix) {
  std::vector<std::string> out;
  for (const std::string& item : items) out.push_back("`" + prefix + item + "`");
  return join(out, ", ");
}

std::string error_table(const spec& s) {
  std::string out = head({"code", "value", "phase", "meaning", "what to do"}) +
                    row({code("VELO_OK"), "0", "", "success", ""});
  for (const error_code& e : s.errors) {
    out += row({code(e.name), std::to_string(e.code), e.phase, cell(e.doc), cell(e.remedy)});
  }
  return out;
}

std::string parameter_table(const function& f) {
  if (f.parameters.empty()) return "";
  std::string out = head({"parameter", "direction", "NULL", "ownership", "note"});
  for (const parameter& p : f.parameters) {
    const bool pointer = p.type.find('*') != std::string::npos || p.nullable;
    const char* const null = p.nullable ? "allowed" : pointer ? "no" : "";
    out += row({code(p.name), p.direction, null, pointer ? p.ownership : "", cell(p.doc)});
  }
  return out + "\n";
}

std::string size_text(const spec& s, const structure& t) {
  return std::to_string(layout_of(s, t.fields).whole.size) + " bytes" +
         (t.sized ? ", grows at its end" : ", fixed");
}

std::string direction(const op_field& f) {
  return !f.output ? "in" : f.read ? "inout" : "out";
}

std::string default_text(const op_field& f) {
  switch (f.type) {
    case kind::enumeration:
      return code(f.default_name);
    case kind::f64:
      return real(f.default_real);
    case kind::i64:
    case kind::boolean:
      return std::to_string(f.default_int);
    default:
      return f.optional ? "NULL" : "required";
  }
}

std::string range_text(const op_field& f) {
  if (holds_tensors(f)) return join(f.dtypes, " ");
  if (f.type == kind::handle) return code(f.handle);
  if (f.type == kind::enumeration) return code(f.enumeration);
  const auto number = [&](double v) {
    return f.type == kind::i64 ? std::to_string(static_cast<long long>(v)) : real(v);
  };
  std::string out;
  if (f.has_minimum) out += ">= " + number(f.minimum);
  if (f.has_maximum) out += std::string(out.empty() ? "" : ", ") + "<= " + number(f.maximum);
  return out;
}

std::string field_note(const op_field& f) {
  std::string note = f.doc;
  if (f.strided) note += " (strides allowed)";
  const bool mentioned = f.doc.find(" itself") != std::string::npos;
  if (!f.alias.empty() && !mentioned) note += " (in place: may be " + join(f.alias, ", ") + ")";
  return cell(note);
}

std::string bound_text(const error_bound& b) {
  std::vector<std::string> parts;
  if (b.absolute > 0) parts.push_back(real(b.absolute));
  if (b.relative > 0) parts.push_back(real(b.relative) + " of the value");
  if (b.largest > 0) parts.push_back(real(b.largest) + " of the largest");
  return parts.empty() ? "exact" : join(parts, " + ");
}

}  // namespace velo::gen
