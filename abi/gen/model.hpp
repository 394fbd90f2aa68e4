// The ABI as the generator holds it after reading: plain data, in the order of the spec files.
//
// The order of functions is a contract: it is that of slots.json, and slots of the table follow it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "abi/gen/example.hpp"

namespace velo::gen {

struct enumerator {
  std::string name, doc;
  std::int64_t value = 0;
  unsigned since = 100;
};

// An enumeration of the hand-written headers (full enumerator names) or of an operator family
// (short names).
struct enumeration {
  std::string name, doc, header;
  unsigned since = 100;
  bool typed = true;  // a typedef of int32_t carries its name
  std::vector<enumerator> values;
};

struct handle {
  std::string name, doc, header, article, destroy;  // article: "a stream", for messages
  std::int64_t order = 0;  // place in the destruction of a context; 0: no context owns it
  unsigned since = 100;
  std::string short_name() const { return name.substr(5); }
};

struct callback {
  std::string name, doc, header, type;
  unsigned since = 100;
};

struct error_code {
  std::string name, doc, remedy, phase;
  std::int64_t code = 0;
  unsigned since = 100;
};

struct member {
  std::string name, type, doc;
  std::int64_t count = 0;  // > 0: an array
  unsigned since = 100;
  std::vector<member> members;  // of a union
  std::string initial;          // JSON: what the struct's _INIT gives it, where that is not zero
};

struct structure {
  std::string name, doc, header;
  unsigned since = 100;
  bool sized = false;  // begins with struct_size and may grow
  std::vector<member> fields;
};

struct parameter {
  std::string name, type, doc, direction, ownership;
  bool nullable = false;
};

struct function {
  std::string name, doc, header, result, thread;
  unsigned since = 100;
  bool blocking = false;
  std::vector<parameter> parameters;
  std::vector<std::string> errors;                     // short names: "NULL"
  std::string slot() const { return name.substr(5); }  // its member of struct velo_api
};

enum class kind { tensor, tensors, handle, i64, f64, boolean, enumeration, ints, text };

struct op_field {
  std::string name, doc;
  kind type = kind::tensor;
  unsigned since = 100;
  bool output = false, read = true;  // a tensor (or list) with dir inout is both
  bool optional = false, strided = false;
  std::vector<std::string> dtypes, alias;
  std::string handle, enumeration;  // of the field's kind: "velo_pack", "layout"
  std::int64_t default_int = 0;
  double default_real = 0;
  std::string default_name;  // of an enumeration: the enumerator
  std::string json;          // its entry
  bool has_minimum = false, has_maximum = false;
  double minimum = 0, maximum = 0;
};

// How far an output of a dtype may be from the exact value: absolute + relative * |value| +
// largest * the largest magnitude in the same output.
struct error_bound {
  std::string dtype;   // as in a field: "bf16"
  bool mixed = false;  // of float32 outputs of a call that has a narrower floating tensor too
  double absolute = 0, relative = 0, largest = 0;
};

struct op {
  std::string name, thread, source, accuracy, bytes, gradient_of;  // accuracy: in words
  std::string json;                                                // its entry without the fields
  std::vector<std::string> doc, aliases, errors;
  std::vector<error_bound> bounds;
  double least_input = 0, most_input = std::numeric_limits<double>::infinity();
  unsigned since = 100;
  std::vector<op_field> fields;
  std::vector<example> examples;
};

struct family {
  std::string name;
  std::vector<std::string> doc;
  std::vector<enumeration> enums;
  std::vector<op> ops;
};

struct spec {
  unsigned release = 100;
  std::vector<std::string> headers;  // written by hand, of all modules: "stream.h"
  std::vector<handle> handles;
  std::vector<error_code> errors;
  std::vector<enumeration> enums;
  std::vector<callback> callbacks;
  std::vector<structure> structs;
  std::vector<function> functions;  // of the hand-written headers and one per operator, by slot
  std::vector<family> families;

  std::vector<const op*> ops() const;
  // All functions in the order of struct velo_api.
  std::vector<const function*> slots() const;
};

}  // namespace velo::gen
