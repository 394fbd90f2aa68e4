// capi/python/velo/ctypes.py: the whole C interface as a ctypes module. It proves that the spec
// alone is enough to bind a language: no struct, constant or function of it is written by hand.
//
// C types become ctypes expressions: names, pointers, and pointers to functions (declaration.hpp).
// Python's True and False are integers to ctypes; the module refuses them for enumerations and for
// the numbers of operators, in structs by `_numbers_`, in calls by the type `enumeration`.
#include <algorithm>
#include <map>
#include <set>

#include "abi/gen/emit/declaration.hpp"
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

const char* const opening =
    R"("""The C interface of velo as ctypes: every struct, constant and function, and nothing else.

    import velo.ctypes as v
    lib = v.load()
    context = v.velo_context()
    v.check(lib, lib.velo_context_create(None, ctypes.byref(context)))

A struct that begins with struct_size has its size and all defaults set when it is made:
v.velo_rms_norm_args(x=ctypes.pointer(tx), epsilon=1e-5). A name that Python reserves has an
underscore behind it (velo_value.as_). The caller keeps callbacks given to velo, and whatever a
pointer points at, alive, as in C. True and False are taken for flags, and refused for an
enumeration and for a number of an operator. abi/generated/api.md says what the functions do.

Generated from abi/spec: change that and build the target `generate`.
"""
import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_float, c_int32, c_int64
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64, c_void_p


class VeloError(RuntimeError):
    """A refused or failed call: `status`, and velo's sentence as the text."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Sized(ctypes.Structure):
    """A struct that begins with its size and may grow: made with its size and its defaults set."""
    _defaults_, _numbers_ = {}, ()

    def __init__(self, **values):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **{**self._defaults_, **values})

    def __setattr__(self, name, value):
        if value is True or value is False:
            if name in self._numbers_:
                raise TypeError(f"{type(self).__name__}.{name}: expected a number, got {value}")
        super().__setattr__(name, value)


class enumeration(c_int32):
    """An enumerator that a function takes."""

    @classmethod
    def from_param(cls, value):
        if isinstance(value, bool):
            raise TypeError(f"expected an enumerator, got {value}")
        return c_int32(value)


)";

const char* const closing = R"(

def load(path=None):
    """Opens the library, at `path` or where velo's modules find it, and gives every function its
    parameters. Functions newer than the library are left out."""
    if path is None:
        from velo import _libraries
    lib = _libraries.library() if path is None else ctypes.CDLL(path)
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(lib, name, None)
        if function is not None:
            function.restype, function.argtypes = result, parameters
    return lib


def check(lib, status):
    """Raises VeloError with the calling thread's record unless status is VELO_OK."""
    if status != 0:
        text = ctypes.create_string_buffer(1024)
        lib.velo_error_text(text, len(text), None)
        raise VeloError(status, text.value.decode())
)";

std::string trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string without(std::string text, const std::string& word) {
  for (std::size_t at; (at = text.find(word)) != std::string::npos;) text.erase(at, word.size());
  return text;
}

class declarations {
 public:
  explicit declarations(const spec& s) {
    for (const enumeration& e : s.enums) {
      if (!e.typed) continue;
      plain_[e.name] = "c_int32";
      enumerations_.insert(e.name);
    }
  }

  bool is_enumeration(const std::string& declared) const {
    return enumerations_.count(declared) > 0;
  }
  std::string parameter_type(const std::string& declared) const {
    return is_enumeration(declared) ? "enumeration" : type(declared);
  }

  // "const velo_tensor*" -> POINTER(velo_tensor), "void* const*" -> POINTER(c_void_p); result: void
  // becomes None.
  std::string type(const std::string& declared) const {
    if (is_function(declared)) return function_type(declared);
    std::string c = trim(without(without(declared, "const "), "struct "));
    int stars = 0;
    for (; !c.empty() && c.back() == '*'; c = trim(c.substr(0, c.size() - 1))) {
      ++stars;
      const std::size_t before = c.size() - 1;  // of this star
      if (before > 6 && c.compare(before - 6, 6, " const") == 0) c.erase(before - 6, 6);
    }
    std::string out;
    if (stars > 0 && (c == "void" || c == "velo_api")) {
      out = "c_void_p";
      --stars;
    } else if (stars > 0 && c == "char") {
      out = "c_char_p";
      --stars;
    } else {
      const auto known = plain_.find(c);
      out = known != plain_.end() ? known->second : c;
    }
    for (; stars > 0; --stars) out = "POINTER(" + out + ")";
    return out;
  }

 private:
  std::string function_type(const std::string& declared) const {
    const signature read = read_signature(declared);
    std::vector<std::string> parts = {type(read.result)};
    for (const auto& parameter : read.parameters) parts.push_back(type(parameter.type));
    return "CFUNCTYPE(" + join(parts, ", ") + ")";
  }

  std::set<std::string> enumerations_;
  std::map<std::string, std::string> plain_ = {
      {"void", "None"},         {"char", "c_char"},        {"float", "c_float"},
      {"double", "c_double"},   {"int32_t", "c_int32"},    {"int64_t", "c_int64"},
      {"uint8_t", "c_uint8"},   {"uint16_t", "c_uint16"},  {"uint32_t", "c_uint32"},
      {"uint64_t", "c_uint64"}, {"velo_status", "c_int32"}};
};

std::string first_sentence(const std::string& doc) {
  const std::size_t end = doc.find(". ");
  return end == std::string::npos ? doc : doc.substr(0, end + 1);
}

std::string class_of(const std::string& name, const std::string& base, const std::string& doc) {
  return "class " + name + "(" + base + "):\n    \"\"\"" + first_sentence(doc) + "\"\"\"\n\n\n";
}

std::string constants(const spec& s) {
  std::string out = "VELO_OK = 0\n";
  for (const error_code& e : s.errors) out += e.name + " = " + std::to_string(e.code) + "\n";
  for (const enumeration& e : s.enums) {
    for (const enumerator& v : e.values) out += v.name + " = " + std::to_string(v.value) + "\n";
  }
  for (const family& f : s.families) {
    for (const enumeration& e : f.enums) {
      for (const enumerator& v : e.values)
        out += enumerator_name(e.name, v.name) + " = " + std::to_string(v.value) + "\n";
    }
  }
  return out + "\n\n";
}

std::string field_line(const declarations& c, const member& m) {
  std::string type = c.type(m.type);
  if (m.count > 0) type += " * " + std::to_string(m.count);
  return "    (" + quote(python_name(m.name)) + ", " + type + "),\n";
}

// The values that the C macro of a struct sets beside the size; a member that is a struct has a
// list.
std::string initial_values(const structure& t) {
  std::vector<std::string> all;
  for (const member& m : t.fields) {
    if (m.initial.empty()) continue;
    const bool list = m.initial.front() == '[';
    std::string value = list ? m.type + "(" : m.initial;
    for (std::size_t i = 1; list && i + 1 < m.initial.size(); ++i)
      value += m.initial[i] == ',' ? std::string(", ") : std::string(1, m.initial[i]);
    all.push_back(quote(python_name(m.name)) + ": " + value + (list ? ")" : ""));
  }
  return join(all, ", ");
}

// A tuple of names in Python, one name too; "" without any.
std::string numbers(const std::string& before, std::vector<std::string> names,
                    const std::string& after) {
  if (names.empty()) return "";
  if (names.size() == 1) names.push_back("");
  std::string all = join(names, ", ");
  if (names.back().empty()) all.pop_back();
  return before + "_numbers_ = (" + all + ")" + after;
}

std::string structs(const spec& s, const declarations& c) {
  std::string out;
  for (const structure& t : s.structs)
    out += class_of(t.name, t.sized ? "Sized" : "ctypes.Structure", t.doc);
  for (const callback& b : s.callbacks) out += b.name + " = " + c.type(b.type) + "\n";
  if (!s.callbacks.empty()) out += "\n";
  for (const structure& t : s.structs) {
    std::string fields;
    for (const member& m : t.fields) {
      if (m.members.empty()) {
        fields += field_line(c, m);
        continue;
      }
      const std::string name = t.name + "_" + m.name;
      out += "\n\nclass " + name + "(ctypes.Union):\n    \"\"\"" + m.doc +
             "\"\"\"\n    _fields_ = [\n";
      for (const member& inner : m.members) out += "    " + field_line(c, inner);
      out += "    ]\n\n\n";
      fields += "    (" + quote(python_name(m.name)) + ", " + name + "),\n";
    }
    out += t.name + "._fields_ = [\n" + fields + "]\n";
    const std::string defaults = initial_values(t);
    if (t.sized && !defaults.empty()) out += t.name + "._defaults_ = {" + defaults + "}\n";
    std::vector<std::string> enumerations;
    for (const member& m : t.fields) {
      if (c.is_enumeration(m.type)) enumerations.push_back(quote(python_name(m.name)));
    }
    if (t.sized) out += numbers(t.name + ".", enumerations, "\n");
  }
  return out;
}

std::string default_of(const family& home, const op_field& f) {
  if (f.type == kind::f64) return f.default_real != 0 ? real(f.default_real) : "";
  if (f.type == kind::enumeration) {
    for (const enumeration& e : home.enums) {
      for (const enumerator& v : e.values) {
        if (e.name == f.enumeration && v.name == f.default_name)
          return v.value != 0 ? enumerator_name(e.name, v.name) : "";
      }
    }
  }
  return f.default_int != 0 ? std::to_string(f.default_int) : "";
}

std::string args_struct(const family& home, const op& o, const declarations& c) {
  std::string out = "\n\n" + class_of("velo_" + o.name + "_args", "Sized",
                                      o.doc.empty() ? o.name : o.doc.front());
  out.erase(out.size() - 2);
  out +=
      "    _fields_ = [\n        (\"struct_size\", c_uint32),\n        (\"reserved\", c_uint32),\n";
  std::vector<std::string> defaults, plain_numbers;
  for (const op_field& f : o.fields) {
    if (f.type == kind::enumeration || f.type == kind::i64 || f.type == kind::f64)
      plain_numbers.push_back(quote(python_name(f.name)));
    out += "        (" + quote(python_name(f.name)) + ", " + c.type(field_type(f)) + "),  # " +
           first_sentence(f.doc) + "\n";
    const std::string value = default_of(home, f);
    if (!value.empty()) defaults.push_back(quote(python_name(f.name)) + ": " + value);
  }
  out += "    ]\n";
  if (!defaults.empty()) out += "    _defaults_ = {" + join(defaults, ", ") + "}\n";
  return out + numbers("    ", plain_numbers, "\n");
}

}  // namespace

std::string emit_ctypes(const spec& s) {
  const declarations c(s);
  std::string out = opening + constants(s);
  for (const handle& h : s.handles) out += class_of(h.name, "c_void_p", h.doc);
  out += structs(s, c);
  for (const family& f : s.families) {
    for (const op& o : f.ops) out += args_struct(f, o, c);
  }
  out +=
      "\n\n# Result and parameters of every function, in the order of the function "
      "table.\nFUNCTIONS = {\n";
  for (const function* f : s.slots()) {
    std::vector<std::string> types = {c.type(f->result)};
    for (const parameter& p : f->parameters) types.push_back(c.parameter_type(p.type));
    out += "    " + quote(f->name) + ": (" + join(types, ", ") + (types.size() == 1 ? ",)" : ")") +
           ",\n";
  }
  out += "}\n";
  out +=
      class_of("velo_api", "ctypes.Structure",
               "The function table of velo_get_api: its size, its ABI, and one slot per function.")
          .insert(0, "\n\n");
  out.erase(out.size() - 2);
  out +=
      "    _fields_ = [(\"struct_size\", c_uint32), (\"abi\", c_uint32)] + [\n"
      "        (name[len(\"velo_\"):], CFUNCTYPE(*types)) for name, types in FUNCTIONS.items()]\n";
  return out + closing;
}

}  // namespace velo::gen
