// client_operators.c: the frozen client's calls of the operators, one function for every example
// with a known result, and one for every operator of what it refuses: each required tensor left
// out, each tensor of a wrong kind, each attribute out of its range, by the code that was promised
// and with all outputs as they were. What it includes lies in abi/client/.
#include "abi/gen/element.hpp"
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

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

std::string declare_list(const example_value& list) {
  std::vector<std::string> items;
  for (const std::int64_t item : list.list) items.push_back(std::to_string(item));
  const std::string count = std::to_string(items.size());
  return "  const velo_ints " + list.field + "_list = {(const int64_t[]){" + join(items, ", ") +
         "}, " + count + "};\n";
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
      tensors += declare_list(*value);
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

// The call with one thing wrong, and right again.
std::string refused(const op& o, const std::string& field, const std::string& wrong,
                    const std::string& right, const std::string& code) {
  return "  args." + field + " = " + wrong + ";\n  REFUSES(velo_" + o.name +
         "(stream, &args), VELO_ERR_" + code + ");\n  args." + field + " = " + right + ";\n";
}

std::string refused_tensor(const op& o, const op_field& f) {
  const std::string right = f.name + "_tensor";
  std::string out = f.optional ? "" : refused(o, f.name, "NULL", "&" + right, "NULL");
  for (const auto& [change, code] : {std::pair<const char*, const char*>{"data = NULL", "NULL"},
                                     {"ndim = -1", "RANK"},
                                     {"dtype.code = 99", "DTYPE"},
                                     {"device.type = 99", "DEVICE"}}) {
    out += "  wrong = " + right + ", wrong." + change + ";\n" +
           refused(o, f.name, "&wrong", "&" + right, code);
  }
  return out;
}

std::string refused_attribute(const op& o, const op_field& f, const std::string& right) {
  const auto out_of_range = [&](double value) {
    return refused(o, f.name,
                   f.type == kind::f64 ? real(value) : std::to_string(std::int64_t(value)), right,
                   "ARGUMENT");
  };
  if (f.type == kind::boolean) return out_of_range(2);
  if (f.type == kind::enumeration) return out_of_range(99);
  return (f.has_minimum && f.minimum > -1e15 ? out_of_range(f.minimum - 1) : "") +
         (f.has_maximum && f.maximum < 1e15 ? out_of_range(f.maximum + 1) : "");
}

// From an example: what the operator refuses, and that it then wrote nothing.
std::string refusals(const op& o, const example& e) {
  std::string tensors, sets, calls, checks;
  for (const op_field& f : o.fields) {
    const example_value *in = find(e.in, f.name), *out = find(e.out, f.name);
    const example_value* value = out != nullptr ? out : in;
    if (holds_tensors(f) && value != nullptr) {
      tensors += declare_tensor(*value, in);
      sets += "  args." + f.name + " = &" + f.name + "_tensor;\n";
      calls += refused_tensor(o, f);
      if (f.output) sets += "  KEEP(" + f.name + ");\n", checks += "  KEPT(" + f.name + ");\n";
    } else if (f.type == kind::ints && value != nullptr) {
      tensors += declare_list(*value);
      sets += "  args." + f.name + " = &" + f.name + "_list;\n";
    } else if (!is_pointer(f)) {
      const std::string right = "args_right." + f.name;
      if (value != nullptr) sets += "  args." + f.name + " = " + value->literal + ";\n";
      calls += refused_attribute(o, f, right);
    }
  }
  const std::string type = "velo_" + o.name + "_args";
  return "\nstatic void " + o.name + "_refusals(velo_stream stream) {\n" + tensors + "  " + type +
         " args = " + upper(type + "_init") + ";\n  velo_tensor wrong;\n" + sets + "  const " +
         type + " args_right = args;\n" + calls +
         refused(o, "struct_size", "4", "args_right.struct_size", "STRUCT") + checks + "}\n";
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
      if (number > 1) continue;
      out += refusals(*o, e);
      calls += "  " + o->name + "_refusals(stream);\n";
    }
  }
  return out + "\nvoid client_operators(velo_stream stream) {\n" + calls + "}\n";
}

}  // namespace velo::gen
