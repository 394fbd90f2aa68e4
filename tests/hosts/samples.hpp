// Small calls of every operator, as plain data, with the result the C API gives: what each mini
// host hands to its adapter entries and compares with, bit for bit. They are the examples that
// every operator describes itself with (abi/spec).
//
// An input that is an output too is one the operator reads and writes. Inputs come in each of
// float32, bfloat16 and float16 that they may have. An operator without a sample fails the tests,
// so none escapes but those over lists of tensors.
#pragma once

#include <velo/velo.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hosts {

struct array {
  velo_dtype dtype{};
  std::vector<std::int64_t> shape;
  std::vector<unsigned char> bytes;

  velo_tensor view() const;
  std::int64_t count() const;
};

struct named_array {
  std::string field;
  array data;
};

struct attribute {
  std::string name;
  velo_value_kind kind = VELO_VALUE_NONE;  // NONE: a boolean, which velo's values do not have
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<std::int64_t> list;
};

struct known_result {
  std::string field;
  std::vector<double> values;
};

struct sample {
  std::string op;
  std::vector<named_array> inputs;
  std::vector<named_array> outputs;  // as the plain call left them
  std::vector<attribute> attributes;
  std::vector<known_result> known;  // what some outputs should be
  bool counted = true;              // the tensors say by their number which they are
  velo_status status = VELO_OK;
  std::string text;  // velo's sentence when the plain call failed

  std::string fields() const;           // "x,gamma->y,rstd"
  std::string attributes_json() const;  // with "fields"
  std::vector<named_array> blank_outputs() const;
  const array* input(const std::string& field) const;
};

// Every operator's samples; with_attributes false leaves all attributes at their defaults (a plain
// call may then fail, and so must the host's, in the same words).
const std::vector<sample>& samples(bool with_attributes);

// The one of an operator, with its attributes.
sample sample_of(const std::string& op);

struct field {
  std::string name, kind;
  bool read = false, written = false, optional = false;
};
std::vector<field> fields_of(const std::string& op);  // in the order of the args struct
bool holds_tensors(const field& f);
// Whether some field is a list of tensors. Such an operator has no examples, but tests of its own.
bool takes_lists(const std::string& op);
std::vector<std::string> operator_names();
std::int64_t enumerator(const std::string& op, const attribute& a);  // an attribute as a number

bool same_bits(const std::vector<named_array>& a, const std::vector<named_array>& b);
array filled(const velo_dtype& dtype, const std::vector<std::int64_t>& shape, unsigned char byte);

}  // namespace hosts
