// examples/<op>.{c,cpp,py}: a program for every operator in each language, made of its first
// example with a known result. The pages of the reference show what stands between the marks
// `the call` and `the results`; tests/reference compiles and runs the whole, and holds what it
// prints to the spec.
#include <cmath>
#include <set>

#include "abi/gen/element.hpp"
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

// The parts of a program; `tensors` to `note` are what a page shows.
struct sample {
  std::string constants, tensors, call, note, prints;
  bool widens = false;  // bfloat16 results to floats
};

// One field of the call.
struct given {
  const op_field* field;
  const example_value* value;   // what it is set to; of an output its shape and dtype
  const example_value* before;  // of a tensor: what the call finds there; nullptr for nothing
  bool output;
};

std::vector<given> given_of(const op& o, const example& e) {
  std::vector<given> all;
  for (const op_field& f : o.fields) {
    const example_value *in = find(e.in, f.name), *out = find(e.out, f.name);
    if (in != nullptr || out != nullptr)
      all.push_back({&f, out != nullptr ? out : in, in, out != nullptr});
  }
  return all;
}

std::string number(double value) {
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e15;
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : real(value);
}

std::string list(const std::vector<std::int64_t>& items) {
  std::vector<std::string> out;
  for (const std::int64_t item : items) out.push_back(std::to_string(item));
  return join(out, ", ");
}

std::string count_of(const example_value& v) {
  return std::to_string(v.values.size());
}

std::set<std::string> dtypes_of(const std::vector<given>& all) {
  std::set<std::string> out;
  for (const given& g : all) {
    if (g.field->type == kind::tensor) out.insert(g.value->dtype);
  }
  return out;
}

// "y: 1, 2, -3, -4; rstd: 1"
std::string results(const std::vector<given>& all) {
  std::vector<std::string> out;
  for (const given& g : all) {
    if (!g.output) continue;
    std::vector<std::string> numbers;
    for (const double value : g.value->values) numbers.push_back(number(value));
    out.push_back(g.field->name + ": " + join(numbers, ", "));
  }
  return join(out, "; ");
}

std::string dtype_constant(const std::string& dtype) {
  const element& e = element_of(dtype);
  return std::string("VELO_DTYPE_") + e.code + ", " + std::to_string(e.bits) + ", 1";
}

// The numbers of a tensor in a C initializer, or none for memory that the call fills.
std::string c_data(const given& g, const std::string& type, bool cpp) {
  const element& e = element_of(g.value->dtype);
  const std::string name = "  " + type + " " + g.field->name + "_data[";
  if (g.before == nullptr) return name + count_of(*g.value) + "];\n";
  std::vector<std::string> numbers;
  for (const double value : g.before->values) {
    const std::string text = number(value);
    const bool whole = text.find_first_of(".e") == std::string::npos;
    if (is_bfloat16(e)) {
      numbers.push_back(cpp ? "velo::bfloat16(" + text + (whole ? ")" : "f)") : literal(value, e));
    } else {
      numbers.push_back(text + (whole || e.bits == 64 ? "" : "f"));
    }
  }
  return arrange(name + "] = {", numbers, "};\n");
}

std::string c_prints(const given& g, const std::string& print, const std::string& value) {
  return "  " + print + "(\"" + g.field->name + "\");\n  for (int i = 0; i < " +
         count_of(*g.value) + "; ++i) " + print + "(\" %.9g\", " + value + ");\n  " + print +
         "(\"\\n\");\n";
}

sample c_sample(const op& o, const std::vector<given>& all) {
  sample out;
  out.constants = "  const velo_device cpu = {VELO_DEVICE_CPU, 0};\n";
  for (const std::string& dtype : dtypes_of(all))
    out.constants +=
        "  const velo_dtype " + dtype_name(dtype) + " = {" + dtype_constant(dtype) + "};\n";
  const std::string args = "velo_" + o.name + "_args";
  out.call = "  " + args + " args = " + upper(args) + "_INIT;\n";
  for (const given& g : all) {
    const std::string& name = g.field->name;
    if (g.field->type == kind::ints) {
      out.tensors += "  const velo_ints " + name + " = {(const int64_t[]){" + list(g.value->list) +
                     "}, " + std::to_string(g.value->list.size()) + "};\n";
    } else if (g.field->type == kind::tensor) {
      const element& e = element_of(g.value->dtype);
      const std::string shape =
          g.value->shape.empty() ? "NULL" : "(const int64_t[]){" + list(g.value->shape) + "}";
      out.tensors += c_data(g, e.c_type, false);
      out.tensors += "  const velo_tensor " + name + " = {" + name + "_data, cpu, " +
                     std::to_string(g.value->shape.size()) + ", " + dtype_name(g.value->dtype) +
                     ", " + shape + ", NULL, 0};\n";
      if (g.output)
        out.prints += c_prints(
            g, "printf",
            is_bfloat16(e) ? "widened(" + name + "_data[i])" : "(double)" + name + "_data[i]");
      out.widens = out.widens || (g.output && is_bfloat16(e));
    }
    const bool plain = !g.value->literal.empty();
    out.call += "  args." + name + " = " + (plain ? g.value->literal : "&" + name) + ";\n";
  }
  out.call += "  if (velo_" + o.name + "(stream, &args) != VELO_OK) return complain();\n";
  out.note = comment({"Now " + results(all) + "."}, "  ");
  return out;
}

const char* const c_widened =
    "static double widened(uint16_t bits) { /* a bfloat16 is the upper half of a float */\n"
    "  const uint32_t word = (uint32_t)bits << 16;\n"
    "  float value;\n"
    "  memcpy(&value, &word, sizeof value);\n"
    "  return value;\n"
    "}\n\n";

std::string c_program(const op& o, const sample& s) {
  return "/* " + o.name + " in C. With an installed velo: cc " + o.name +
         ".c $(pkg-config --cflags --libs velo) */\n"
         "#include <stdio.h>\n" +
         (s.widens ? "#include <string.h>\n" : "") +
         "#include <velo/velo.h>\n\n"
         "static int complain(void) {\n"
         "  char text[1024];\n"
         "  velo_error_text(text, sizeof text, NULL);\n"
         "  fprintf(stderr, \"%s\\n\", text);\n"
         "  return 1;\n"
         "}\n\n" +
         (s.widens ? c_widened : "") +
         "int main(void) {\n"
         "  velo_context context;\n"
         "  velo_stream stream;\n"
         "  if (velo_context_create(NULL, &context) != VELO_OK) return complain();\n"
         "  if (velo_context_stream(context, &stream) != VELO_OK) return complain();\n\n"
         "  /* the call */\n" +
         s.constants + s.tensors + "\n" + s.call + s.note + "  /* the results */\n" + s.prints +
         "  velo_context_destroy(context);\n"
         "  return 0;\n"
         "}\n";
}

// velo::element::bfloat16, from VELO_ELEMENT_BFLOAT16
std::string cpp_attribute(const family& home, const given& g) {
  if (g.field->type == kind::boolean) return g.value->literal == "0" ? "false" : "true";
  if (g.field->type == kind::f64) return number(std::stod(g.value->literal));
  for (const enumeration& e : home.enums) {
    for (const enumerator& v : e.values) {
      if (e.name == g.field->enumeration && enumerator_name(e.name, v.name) == g.value->literal)
        return "velo::" + e.name + "::" + v.name;
    }
  }
  return g.value->literal;
}

sample cpp_sample(const family& home, const op& o, const std::vector<given>& all) {
  sample out;
  std::vector<std::string> setters;
  for (const given& g : all) {
    const std::string& name = g.field->name;
    if (g.field->type == kind::ints) {
      out.tensors += "  const int64_t " + name + "_data[] = {" + list(g.value->list) +
                     "};\n  const velo_ints " + name + " = {" + name + "_data, " +
                     std::to_string(g.value->list.size()) + "};\n";
    } else if (g.field->type == kind::tensor) {
      const element& e = element_of(g.value->dtype);
      out.tensors += c_data(g, is_bfloat16(e) ? "velo::bfloat16" : e.c_type, true);
      out.tensors += "  const velo::tensor_view " + name + "(" + name + "_data, {" +
                     list(g.value->shape) + "});\n";
      if (g.output)
        out.prints += c_prints(g, "std::printf", "static_cast<double>(" + name + "_data[i])");
    }
    const bool plain = !g.value->literal.empty();
    setters.push_back("." + name + "(" + (plain ? cpp_attribute(home, g) : name) + ")");
  }
  const std::string head = "  velo::" + o.name + "(stream, velo::" + o.name + "_args()";
  const std::string flat = head + join(setters, "") + ");\n";
  out.call = flat.size() <= columns + 1
                 ? flat
                 : "  velo::" + o.name + "(stream, velo::" + o.name + "_args()\n" +
                       std::string(10, ' ') + join(setters, "\n" + std::string(10, ' ')) + ");\n";
  out.note = line_comment({"Now " + results(all) + "."}, "  ");
  return out;
}

std::string cpp_program(const op& o, const sample& s) {
  return "// " + o.name + " in C++. With an installed velo: c++ -std=c++17 " + o.name +
         ".cpp $(pkg-config --cflags --libs velo)\n"
         "#include <cstdio>\n"
         "#include <velo/velo.hpp>\n\n"
         "int main() try {\n"
         "  const velo::context context = velo::context::create();\n"
         "  const velo::stream_ref stream = context.inline_stream();\n\n"
         "  // the call\n" +
         s.tensors + s.call + s.note + "  // the results\n" + s.prints +
         "  return 0;\n"
         "} catch (const velo::error& failure) {\n"
         "  std::fprintf(stderr, \"%s\\n\", failure.what());\n"
         "  return 1;\n"
         "}\n";
}

// A tensor and its memory.
std::string python_tensor(const given& g) {
  const element& e = element_of(g.value->dtype);
  const std::string& name = g.field->name;
  const std::string type = e.c_type;
  const std::string c_type =
      "ctypes.c_" + (type.rfind("_t") == type.size() - 2 ? type.substr(0, type.size() - 2) : type);
  std::vector<std::string> numbers;
  if (g.before != nullptr) {
    for (const double value : g.before->values)
      numbers.push_back(is_bfloat16(e) ? literal(value, e) : number(value));
  }
  const std::string shape = "(ctypes.c_int64 * " + std::to_string(g.value->shape.size()) + ")(" +
                            list(g.value->shape) + ")";
  return name + "_data = (" + c_type + " * " + count_of(*g.value) + ")(" + join(numbers, ", ") +
         ")\n" + name + " = capi.velo_tensor(ctypes.addressof(" + name + "_data), cpu, " +
         std::to_string(g.value->shape.size()) + ", " + dtype_name(g.value->dtype) + ", " + shape +
         ")\n";
}

sample python_sample(const op& o, const std::vector<given>& all) {
  sample out;
  out.constants = "cpu = capi.velo_device(capi.VELO_DEVICE_CPU, 0)\n";
  for (const std::string& dtype : dtypes_of(all))
    out.constants += dtype_name(dtype) + " = capi.velo_dtype(capi." + dtype_constant(dtype) + ")\n";
  std::vector<std::string> sets;
  for (const given& g : all) {
    const std::string& name = g.field->name;
    if (g.field->type == kind::ints) {
      const std::string count = std::to_string(g.value->list.size());
      out.tensors += name + " = capi.velo_ints((ctypes.c_int64 * " + count + ")(" +
                     list(g.value->list) + "), " + count + ")\n";
    } else if (g.field->type == kind::tensor) {
      out.tensors += python_tensor(g);
      const bool narrow = is_bfloat16(element_of(g.value->dtype));
      if (g.output)
        out.prints += "print(\"" + name + "\", *(format(" + (narrow ? "widened(n)" : "n") +
                      ", \".9g\") for n in " + name + "_data))\n";
      out.widens = out.widens || (g.output && narrow);
    }
    const std::string& plain = g.value->literal;
    const bool constant = g.field->type == kind::enumeration;
    const bool bytes = g.field->type == kind::text;
    sets.push_back(python_name(name) + "=" +
                   (plain.empty()                    ? "ctypes.pointer(" + name + ")"
                    : constant                       ? "capi." + plain
                    : bytes                          ? "b" + plain
                    : g.field->type == kind::boolean ? plain
                                                     : number(std::stod(plain))));
  }
  out.call = arrange("args = capi.velo_" + o.name + "_args(", sets, ")\n") +
             "capi.check(lib, lib.velo_" + o.name + "(stream, ctypes.byref(args)))\n";
  out.note = "# Now " + results(all) + ".\n";
  return out;
}

const char* const python_widened =
    "\ndef widened(bits):\n"
    "    \"\"\"A bfloat16 is the upper half of a float.\"\"\"\n"
    "    return struct.unpack(\"<f\", struct.pack(\"<HH\", 0, bits))[0]\n\n";

std::string python_program(const op& o, const sample& s) {
  return "\"\"\"" + o.name + " in Python, by ctypes alone.\"\"\"\nimport ctypes\n" +
         (s.widens ? "import struct\n" : "") + "\nimport velo.ctypes as capi\n\n" +
         (s.widens ? python_widened : "") +
         "lib = capi.load()\n"
         "context, stream = capi.velo_context(), capi.velo_stream()\n"
         "capi.check(lib, lib.velo_context_create(None, ctypes.byref(context)))\n"
         "capi.check(lib, lib.velo_context_stream(context, ctypes.byref(stream)))\n\n"
         "# the call\n" +
         s.constants + s.tensors + "\n" + s.call + s.note + "# the results\n" + s.prints +
         "lib.velo_context_destroy(context)\n";
}

}  // namespace

const example* known_example(const op& o) {
  for (const example& e : o.examples) {
    if (!e.out.empty()) return &e;
  }
  return nullptr;
}

files emit_samples(const spec& s) {
  files out;
  for (const family& home : s.families) {
    for (const op& o : home.ops) {
      const example* e = known_example(o);
      if (e == nullptr) continue;
      const std::vector<given> all = given_of(o, *e);
      const std::string name = "examples/" + o.name;
      out[name + ".c"] = c_program(o, c_sample(o, all));
      out[name + ".cpp"] = cpp_program(o, cpp_sample(home, o, all));
      out[name + ".py"] = python_program(o, python_sample(o, all));
    }
  }
  return out;
}

}  // namespace velo::gen
