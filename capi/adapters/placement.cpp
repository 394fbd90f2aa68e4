// Prefixes of optional tensors, and the arrow form; see the header.
#include "capi/adapters/placement.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "capi/adapters/failure.hpp"

namespace velo::adapters {
namespace {

bool holds_tensors(const field& f) {
  return f.kind == field_kind::tensor || f.kind == field_kind::tensors;
}

bool reads(const op_info& op, const field& f) {
  if (!holds_tensors(f) || !f.input) return false;
  return !f.output || find_field(op, "accumulate") < 0;
}

bool writes(const field& f) {
  return holds_tensors(f) && f.output;
}

// A list's length cannot be counted: positions say nothing of such an operator.
void refuse_lists(const op_info& op) {
  for (int f = 0; f < op.field_count; ++f) {
    if (op.fields[f].kind == field_kind::tensors)
      refuse(VELO_ERR_ARGUMENT,
             "%s: expected the tensors named by the attribute `fields`, with the length of each "
             "list (%s[n]), got none",
             op.fields[f].name, op.fields[f].name);
  }
}

// Required tensors, the first `from_inputs` optional inputs, the first `from_outputs` optional
// tensors that are outputs alone.
placement choose(const op_info& op, int from_inputs, int from_outputs) {
  placement out;
  for (int f = 0; f < op.field_count; ++f) {
    const field& it = op.fields[f];
    const bool in = reads(op, it);
    if (!in && !writes(it)) continue;
    if (it.optional && (in ? from_inputs : from_outputs)-- <= 0) continue;
    if (in) out.inputs[out.input_count++] = f;
    if (writes(it)) out.outputs[out.output_count++] = f;
  }
  return out;
}

struct optionals {
  int inputs = 0, outputs = 0;
  explicit optionals(const op_info& op) {
    for (int f = 0; f < op.field_count; ++f) {
      if (!op.fields[f].optional) continue;
      if (reads(op, op.fields[f]))
        ++inputs;
      else if (writes(op.fields[f]))
        ++outputs;
    }
  }
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "params[3]" -> "params" and 3; without brackets -1.
int take_length(std::string_view& name) {
  const std::size_t open = name.find('[');
  if (open == name.npos || name.back() != ']') return -1;
  int length = 0;
  const std::string_view digits = name.substr(open + 1, name.size() - open - 2);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    return -1;
  name = name.substr(0, open);
  return length;
}

void read_names(const op_info& op, std::string_view names, bool outputs, int* list, int& count) {
  names = trimmed(names);
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    std::string_view name = trimmed(names.substr(0, comma));
    const int length = take_length(name);
    names = comma == names.npos ? std::string_view() : names.substr(comma + 1);
    const int f = find_field(op, name);
    if (f < 0 || !holds_tensors(op.fields[f]) || (outputs && !op.fields[f].output))
      refuse(VELO_ERR_NOT_FOUND, "fields: expected %s tensors of %s, got \"%.*s\"",
             outputs ? "output" : "names of", op.name, static_cast<int>(name.size()), name.data());
    for (int i = 0; i < count; ++i) {
      if (list[i] == f)
        refuse(VELO_ERR_ARGUMENT, "fields: expected each tensor once, got %s again",
               op.fields[f].name);
    }
    const bool is_list = op.fields[f].kind == field_kind::tensors;
    if (is_list != (length > 0))
      refuse(VELO_ERR_ARGUMENT,
             is_list ? "fields: expected the length of the list, %s[n], got none"
                     : "fields: expected no length of %s, which is one tensor, got one",
             op.fields[f].name);
    if (count + (is_list ? length : 1) > max_buffers)
      refuse(VELO_ERR_ARGUMENT, "fields: expected at most %d tensors, got more", max_buffers);
    for (int i = 0; i < (is_list ? length : 1); ++i) list[count++] = f;
  }
}

[[noreturn]] void no_fit(const op_info& op, const char* got) {
  char text[700];
  std::size_t used = 0;
  const placement all = choose(op, max_fields, max_fields);
  const auto add = [&](const char* lead, const field& f) {
    const int wrote = std::snprintf(text + used, sizeof text - used, "%s%s%s%s", lead,
                                    f.optional ? "[" : "", f.name, f.optional ? "]" : "");
    used += static_cast<std::size_t>(wrote);
    if (used >= sizeof text) used = sizeof text - 1;
  };
  for (int i = 0; i < all.input_count; ++i) add(i == 0 ? "" : ",", op.fields[all.inputs[i]]);
  for (int i = 0; i < all.output_count; ++i) add(i == 0 ? "->" : ",", op.fields[all.outputs[i]]);
  refuse(VELO_ERR_ARGUMENT,
         "tensors: expected %s (the optional ones in this order, or named by the attribute "
         "`fields`), got %s",
         text, got);
}

std::uint64_t bytes_of(const velo_tensor& t) {
  std::uint64_t count = 1;
  for (int i = 0; i < t.ndim; ++i) count *= static_cast<std::uint64_t>(t.shape[i]);
  return (count * t.dtype.bits + 7u) / 8u;
}

bool alike(const velo_tensor& a, const velo_tensor& b) {
  return a.ndim == b.ndim && a.dtype.code == b.dtype.code && a.dtype.bits == b.dtype.bits &&
         std::equal(a.shape, a.shape + a.ndim, b.shape);
}

}  // namespace

placement place_named(const op_info& op, std::string_view fields) {
  placement out;
  const std::size_t arrow = fields.find("->");
  if (arrow == fields.npos)
    refuse(VELO_ERR_PARSE, "fields: expected \"inputs->outputs\", got \"%.*s\"",
           static_cast<int>(fields.size()), fields.data());
  read_names(op, fields.substr(0, arrow), false, out.inputs, out.input_count);
  read_names(op, fields.substr(arrow + 2), true, out.outputs, out.output_count);
  for (int i = 0; i < out.input_count; ++i) {
    const int f = out.inputs[i];
    bool written = !op.fields[f].output;
    for (int o = 0; o < out.output_count; ++o) written = written || out.outputs[o] == f;
    if (!written)
      refuse(VELO_ERR_ARGUMENT,
             "fields: expected %s among the outputs too, which it is, got \"%.*s\"",
             op.fields[f].name, static_cast<int>(fields.size()), fields.data());
  }
  for (int o = 0; o < out.output_count; ++o) {
    const int f = out.outputs[o];
    const auto before = std::count(out.inputs, out.inputs + out.input_count, f);
    if (before > 0 && before != std::count(out.outputs, out.outputs + out.output_count, f))
      refuse(VELO_ERR_ARGUMENT, "fields: expected one length of %s as input and as output, got two",
             op.fields[f].name);
    if (before == 0 && reads(op, op.fields[f]))
      refuse(VELO_ERR_ARGUMENT,
             "fields: expected %s among the inputs too, which it is, got \"%.*s\"",
             op.fields[f].name, static_cast<int>(fields.size()), fields.data());
  }
  return out;
}

placement place_counted(const op_info& op, int inputs, int outputs) {
  refuse_lists(op);
  const optionals most(op);
  for (int i = 0; i <= most.inputs; ++i) {
    if (choose(op, i, 0).input_count != inputs) continue;
    for (int o = 0; o <= most.outputs; ++o) {
      const placement out = choose(op, i, o);
      if (out.output_count == outputs) return out;
    }
  }
  char got[64];
  std::snprintf(got, sizeof got, "%d inputs and %d outputs", inputs, outputs);
  no_fit(op, got);
}

placement place_total(const op_info& op, int buffers) {
  refuse_lists(op);
  const optionals most(op);
  for (int i = 0; i <= most.inputs + most.outputs; ++i) {
    const int o = i > most.inputs ? i - most.inputs : 0;
    const placement out = choose(op, i - o, o);
    if (out.input_count + out.output_count == buffers) return out;
  }
  char got[64];
  std::snprintf(got, sizeof got, "%d tensors", buffers);
  no_fit(op, got);
}

namespace {

// The number of buffers from `at` on that are of one field.
int run_of(const int* fields, int count, int at) {
  int length = 1;
  while (at + length < count && fields[at + length] == fields[at]) ++length;
  return length;
}

void carry_over(const field& f, const velo_tensor& from, const velo_tensor& to) {
  if (!alike(from, to))
    refuse(VELO_ERR_SHAPE, "%s: expected one shape and dtype as input and as output, got two",
           f.name);
  if (from.data != to.data && bytes_of(to) > 0) std::memcpy(to.data, from.data, bytes_of(to));
}

void put(call& made, int f, const velo_tensor* buffers, int length) {
  if (made.at(f).kind == field_kind::tensors) return made.tensors(f, buffers, length);
  made.tensor(f, *buffers);
}

}  // namespace

void put_buffers(call& made, const placement& where, const velo_tensor* buffers) {
  const op_info& op = made.op();
  const velo_tensor* outputs = buffers + where.input_count;
  const velo_tensor* before[max_fields] = {};  // by field: its buffers among the inputs
  for (int i = 0; i < where.input_count;) {
    const int f = where.inputs[i], length = run_of(where.inputs, where.input_count, i);
    put(made, f, buffers + i, length);
    before[f] = buffers + i;
    i += length;
  }
  bool carried = false;
  for (int o = 0; o < where.output_count;) {
    const int f = where.outputs[o], length = run_of(where.outputs, where.output_count, o);
    carried = carried || before[f] != nullptr;
    for (int i = 0; i < length && before[f] != nullptr; ++i)
      carry_over(op.fields[f], before[f][i], outputs[o + i]);
    put(made, f, outputs + o, length);
    o += length;
  }
  const int accumulate = find_field(op, "accumulate");
  if (accumulate >= 0 && made.truthy(accumulate) && !carried)
    refuse(VELO_ERR_ARGUMENT,
           "accumulate: expected the sum so far among the inputs (attribute `fields`), got none");
}

}  // namespace velo::adapters
