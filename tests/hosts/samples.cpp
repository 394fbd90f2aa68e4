// Samples from the examples of abi/spec, and the plain calls that give their results.
#include "samples.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "core/simd/scalar.hpp"
#include "tests/json_tree.hpp"
#include "tests/random.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace hosts {
namespace {

using velo::testing::context_desc;
using velo::testing::item_named;
using velo::testing::json_tree;
using velo::testing::text_in;

// A tensor of an example: its numbers, or the range they are drawn from.
struct input {
  std::string field;
  std::string dtype;  // "T": the element type of the sample, one of `types`
  std::vector<std::string> types;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  double low = -1, high = 1;
};

struct entry {
  std::string op;
  std::vector<input> inputs;
  std::vector<attribute> attributes;
  std::vector<known_result> known;
};

void must(velo_status status) {
  if (status == VELO_OK) return;
  char text[1024];
  velo_error_text(text, sizeof text, nullptr);
  throw std::runtime_error(text);
}

// The JSON that describe(arguments.., buffer, capacity, &needed) writes.
template <class Describe, class... Arguments>
json_tree parsed(const Describe& describe, const Arguments&... arguments) {
  std::uint64_t needed = 0;
  must(describe(arguments..., nullptr, 0, &needed));
  std::string text(needed, '\0');
  must(describe(arguments..., text.data(), text.size(), nullptr));
  json_tree root(json_loads(text.c_str(), 0, nullptr));
  if (root == nullptr)
    throw std::runtime_error("velo described itself in something else than JSON");
  return root;
}

// The document of an operator, or of the whole library for "". Each is read once: the library's has
// a megabyte, and tests ask for it in every call.
json_t* document_of(const std::string& op) {
  static std::mutex reading;
  static std::map<std::string, json_tree> documents;
  const std::lock_guard<std::mutex> lock(reading);
  const auto found = documents.find(op);
  if (found != documents.end()) return found->second.get();
  json_tree read = op.empty() ? parsed(velo_describe) : parsed(velo_op_describe, op.c_str());
  return documents.emplace(op, std::move(read)).first->second.get();
}

// Sets the element type of an input whose example names none.
void set_usual_dtype(input& out, const json_t* field) {
  const json_t* dtypes = json_object_get(field, "dtypes");
  for (std::size_t i = 0; i < json_array_size(dtypes); ++i)
    out.types.emplace_back(json_string_value(json_array_get(dtypes, i)));
  const bool narrow = std::count(out.types.begin(), out.types.end(), "bf16") != 0;
  out.dtype = narrow ? "T" : out.types.empty() ? "f32" : out.types[0];
}

void read_nested(const json_t* value, std::size_t depth, input& out) {
  if (!json_is_array(value)) {
    out.values.push_back(json_number_value(value));
    return;
  }
  if (out.shape.size() == depth)
    out.shape.push_back(static_cast<std::int64_t>(json_array_size(value)));
  for (std::size_t i = 0; i < json_array_size(value); ++i)
    read_nested(json_array_get(value, i), depth + 1, out);
}

std::vector<std::int64_t> integers(const json_t* list) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < json_array_size(list); ++i)
    out.push_back(json_integer_value(json_array_get(list, i)));
  return out;
}

input tensor_of(const json_t* field, const json_t* value) {
  input out;
  out.field = text_in(field, "name");
  const json_t* dtype = json_object_get(value, "dtype");
  if (dtype != nullptr) {
    out.dtype = json_string_value(dtype);
  } else {
    set_usual_dtype(out, field);
  }
  const json_t* values = json_is_object(value) ? json_object_get(value, "values") : value;
  if (values != nullptr) {
    read_nested(values, 0, out);
    return out;
  }
  out.shape = integers(json_object_get(value, "shape"));
  if (const json_t* range = json_object_get(value, "range")) {
    out.low = json_number_value(json_array_get(range, 0));
    out.high = json_number_value(json_array_get(range, 1));
  }
  return out;
}

attribute attribute_of(const json_t* field, const json_t* value) {
  attribute out;
  out.name = text_in(field, "name");
  const std::string kind = text_in(field, "kind");
  if (kind == "f64") {
    out.kind = VELO_VALUE_FLOAT, out.real = json_number_value(value);
  } else if (kind == "enumeration") {
    out.kind = VELO_VALUE_STRING, out.text = json_string_value(value);
  } else if (kind == "ints") {
    out.kind = VELO_VALUE_INTS, out.list = integers(value);
  } else {
    out.kind = VELO_VALUE_INT, out.integer = json_integer_value(value);
  }
  return out;
}

// The examples of every operator, as its self-description has them from abi/spec.
std::vector<entry> examples() {
  std::vector<entry> out;
  for (const std::string& op : operator_names()) {
    json_t* const root = document_of(op);
    std::size_t i, f;
    json_t *example, *field;
    json_array_foreach(json_object_get(root, "examples"), i, example) {
      out.push_back({op, {}, {}, {}});
      json_array_foreach(json_object_get(root, "fields"), f, field) {
        const char* name = json_string_value(json_object_get(field, "name"));
        const bool is_tensor = text_in(field, "kind") == "tensor";
        if (const json_t* in = json_object_get(json_object_get(example, "in"), name)) {
          if (is_tensor)
            out.back().inputs.push_back(tensor_of(field, in));
          else
            out.back().attributes.push_back(attribute_of(field, in));
        }
        if (const json_t* wanted = json_object_get(json_object_get(example, "out"), name))
          out.back().known.push_back({name, tensor_of(field, wanted).values});
      }
    }
  }
  return out;
}

// Whether hosts that give tensors and no attributes can say what this call is. One that adds to an
// output looks like one that writes it, with a tensor more; one without an optional input but with
// an optional output like one with the input and without the output.
bool is_counted(const entry& e) {
  for (const attribute& a : e.attributes) {
    if (a.name == "accumulate" && a.integer != 0) return false;
  }
  bool lacks_input = false, has_output = false;
  for (const field& f : fields_of(e.op)) {
    if (!holds_tensors(f) || !f.optional) continue;
    has_output = has_output || !f.read;
    if (!f.read || f.written) continue;
    const bool given = std::any_of(e.inputs.begin(), e.inputs.end(),
                                   [&](const auto& in) { return in.field == f.name; });
    if (given && lacks_input) return false;  // the one before it stands for it
    lacks_input = lacks_input || !given;
  }
  return !lacks_input || !has_output;
}

velo_dtype dtype_of(const std::string& name) {
  namespace dtypes = velo::testing;
  if (name == "f64") return dtypes::f64;
  if (name == "f32") return dtypes::f32;
  if (name == "f16") return dtypes::f16;
  if (name == "bf16") return dtypes::bf16;
  if (name == "u8") return dtypes::u8;
  if (name == "i8") return dtypes::i8;
  return name == "i64" ? dtypes::i64 : dtypes::i32;
}

template <class T>
void put(array& out, std::int64_t index, T value) {
  std::memcpy(out.bytes.data() + sizeof(T) * static_cast<std::size_t>(index), &value, sizeof value);
}

void put_number(array& out, std::int64_t i, double number) {
  if (out.dtype.code == VELO_DTYPE_UINT) {
    put<std::uint8_t>(out, i, static_cast<std::uint8_t>(number));
  } else if (out.dtype.code == VELO_DTYPE_INT && out.dtype.bits == 8) {
    put<std::int8_t>(out, i, static_cast<std::int8_t>(number));
  } else if (out.dtype.code == VELO_DTYPE_INT && out.dtype.bits == 64) {
    put<std::int64_t>(out, i, static_cast<std::int64_t>(number));
  } else if (out.dtype.code == VELO_DTYPE_INT) {
    put<std::int32_t>(out, i, static_cast<std::int32_t>(number));
  } else if (out.dtype.bits == 64) {
    put<double>(out, i, number);
  } else if (out.dtype.bits == 32) {
    put<float>(out, i, static_cast<float>(number));
  } else if (out.dtype.code == VELO_DTYPE_FLOAT) {
    put(out, i, velo::simd::to_f16(static_cast<float>(number)));
  } else {
    put(out, i, velo::simd::to_bf16(static_cast<float>(number)));
  }
}

array numbers(const input& what, const std::string& type) {
  array out = filled(dtype_of(what.dtype == "T" ? type : what.dtype), what.shape, 0);
  std::uint32_t seed = 7 + static_cast<std::uint32_t>(out.count());
  for (const char c : what.field) seed = seed * 31 + static_cast<unsigned char>(c);
  velo::testing::cheap_random draw(seed);
  // Integers come from the whole range, its upper end included.
  const double width = what.high - what.low + (out.dtype.code == VELO_DTYPE_INT ? 1 : 0);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const double unit = static_cast<double>(draw() >> 8) / static_cast<double>(1u << 24);
    put_number(
        out, i,
        what.values.empty() ? what.low + unit * width : what.values[static_cast<std::size_t>(i)]);
  }
  return out;
}

// Tensors, lists and values of one call; all of them live as long as this.
class named_values {
 public:
  void add(const std::string& field, const array& data) {
    views_.push_back(data.view());
    add_value(field, VELO_VALUE_TENSOR).tensor = &views_.back();
  }
  void add(const attribute& a) {
    auto& as = add_value(a.name, a.kind);
    if (a.kind == VELO_VALUE_FLOAT) {
      as.f = a.real;
    } else if (a.kind == VELO_VALUE_STRING) {
      as.s = a.text.c_str();
    } else if (a.kind == VELO_VALUE_INTS) {
      lists_.push_back({a.list.data(), static_cast<std::int64_t>(a.list.size())});
      as.ints = &lists_.back();
    } else {
      as.i = a.integer;
    }
  }
  const velo_named_value* data() const { return values_.data(); }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

  named_values() {
    views_.reserve(48);
    lists_.reserve(48);
    values_.reserve(48);
  }

 private:
  decltype(velo_value::as)& add_value(const std::string& name, velo_value_kind kind) {
    velo_named_value value{};
    value.name = name.c_str();
    value.value.kind = kind;
    values_.push_back(value);
    return values_.back().value.as;
  }
  std::vector<velo_tensor> views_;
  std::vector<velo_ints> lists_;
  std::vector<velo_named_value> values_;
};

void add_inputs(named_values& values, const sample& s) {
  for (const named_array& in : s.inputs) values.add(in.field, in.data);
  for (const attribute& a : s.attributes) values.add(a);
}

void infer_outputs(velo_context context, sample& s) {
  named_values values;
  add_inputs(values, s);
  velo_shape shapes[48];
  shapes[0].struct_size = sizeof(velo_shape);
  std::int64_t count = 0;
  must(velo_op_infer(context, s.op.c_str(), values.data(), values.size(), shapes, 48, &count));
  for (std::int64_t i = 0; i < count; ++i) {
    const velo_shape& out = shapes[i];
    const array* before = s.input(out.name);
    s.outputs.push_back(
        {out.name,
         before != nullptr ? *before : filled(out.dtype, {out.sizes, out.sizes + out.ndim}, 0xcd)});
  }
}

void run_plainly(velo_stream stream, sample& s) {
  named_values values;
  for (const named_array& in : s.inputs) {
    bool output = false;
    for (const named_array& out : s.outputs) output = output || out.field == in.field;
    if (!output) values.add(in.field, in.data);
  }
  for (const attribute& a : s.attributes) values.add(a);
  for (const named_array& out : s.outputs) values.add(out.field, out.data);
  s.status = velo_op_call(stream, s.op.c_str(), values.data(), values.size());
  if (s.status == VELO_OK) return;
  char text[1024];
  velo_error_text(text, sizeof text, nullptr);
  s.text = text;
}

// The element types that an example is called with: those that all of its "T" inputs take.
std::vector<std::string> types_of(const entry& e) {
  std::vector<std::string> out{"f32", "bf16", "f16"};
  for (const input& in : e.inputs) {
    if (in.dtype != "T") continue;
    const auto refused = [&](const std::string& type) {
      return std::count(in.types.begin(), in.types.end(), type) == 0;
    };
    out.erase(std::remove_if(out.begin(), out.end(), refused), out.end());
  }
  return out;
}

std::vector<sample> make(bool with_attributes) {
  const velo_context_desc desc = context_desc(1);
  velo_context context;
  velo_stream stream;
  must(velo_context_create(&desc, &context));
  must(velo_context_stream(context, &stream));
  std::vector<sample> out;
  for (const entry& e : examples()) {
    if (!with_attributes && !is_counted(e)) continue;
    for (const std::string& type : types_of(e)) {
      sample s;
      s.op = e.op;
      s.counted = is_counted(e);
      s.known = e.known;
      s.attributes = e.attributes;
      for (const input& in : e.inputs) s.inputs.push_back({in.field, numbers(in, type)});
      infer_outputs(context, s);
      if (!with_attributes) s.attributes.clear();
      run_plainly(stream, s);
      out.push_back(std::move(s));
    }
  }
  velo_context_destroy(context);
  return out;
}

std::string names(const std::vector<named_array>& arrays) {
  std::string out;
  for (const named_array& a : arrays) out += (out.empty() ? "" : ",") + a.field;
  return out;
}

}  // namespace

velo_tensor array::view() const {
  return velo::testing::view_of(bytes.data(), dtype, shape.data(),
                                static_cast<std::int32_t>(shape.size()));
}

std::int64_t array::count() const {
  std::int64_t out = 1;
  for (const std::int64_t size : shape) out *= size;
  return out;
}

std::string sample::fields() const {
  return names(inputs) + "->" + names(outputs);
}

std::string sample::attributes_json() const {
  std::string out = "{\"fields\": \"" + fields() + "\"";
  for (const attribute& a : attributes) {
    out += ", \"" + a.name + "\": ";
    if (a.kind == VELO_VALUE_FLOAT) {
      char text[32];
      std::snprintf(text, sizeof text, "%.17g", a.real);
      out += text;
    } else if (a.kind == VELO_VALUE_STRING) {
      out += "\"" + a.text + "\"";
    } else if (a.kind == VELO_VALUE_INTS) {
      std::string items;
      for (const std::int64_t i : a.list) items += (items.empty() ? "" : ",") + std::to_string(i);
      out += "[" + items + "]";
    } else {
      out += std::to_string(a.integer);
    }
  }
  return out + "}";
}

std::vector<named_array> sample::blank_outputs() const {
  std::vector<named_array> out = outputs;
  for (named_array& a : out) a.data = filled(a.data.dtype, a.data.shape, 0xcd);
  return out;
}

const array* sample::input(const std::string& name) const {
  for (const named_array& in : inputs) {
    if (in.field == name) return &in.data;
  }
  return nullptr;
}

const std::vector<sample>& samples(bool with_attributes) {
  static const std::vector<sample> all[2] = {make(false), make(true)};
  return all[with_attributes ? 1 : 0];
}

sample sample_of(const std::string& op) {
  for (const sample& s : samples(true)) {
    if (s.op == op) return s;
  }
  throw std::runtime_error(op);
}

std::vector<field> fields_of(const std::string& op) {
  json_t* const root = document_of(op);
  std::vector<field> out;
  std::size_t i;
  json_t* item;
  json_array_foreach(json_object_get(root, "fields"), i, item) {
    const std::string dir = text_in(item, "dir");
    out.push_back({text_in(item, "name"), text_in(item, "kind"), dir == "in" || dir == "inout",
                   dir == "out" || dir == "inout",
                   json_is_true(json_object_get(item, "optional"))});
  }
  return out;
}

bool holds_tensors(const field& f) {
  return f.kind == "tensor" || f.kind == "tensors";
}

bool takes_lists(const std::string& op) {
  const std::vector<field> fields = fields_of(op);
  return std::any_of(fields.begin(), fields.end(),
                     [](const field& f) { return f.kind == "tensors"; });
}

std::int64_t enumerator(const std::string& op, const attribute& a) {
  if (a.kind != VELO_VALUE_STRING) return a.integer;
  json_t* const root = document_of(op);
  json_t* const all = document_of("");
  const json_t* field = item_named(json_object_get(root, "fields"), a.name);
  const json_t* type = item_named(json_object_get(all, "enums"), text_in(field, "enum"));
  const json_t* value = item_named(json_object_get(type, "values"), a.text);
  if (value == nullptr) throw std::runtime_error("no enumerator " + a.text);
  return json_integer_value(json_object_get(value, "value"));
}

std::vector<std::string> operator_names() {
  std::int64_t count = 0;
  must(velo_op_count(&count));
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    must(velo_op_name(i, &name));
    out.emplace_back(name);
  }
  return out;
}

bool same_bits(const std::vector<named_array>& a, const std::vector<named_array>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].data.bytes != b[i].data.bytes) return false;
  }
  return a.size() == b.size();
}

array filled(const velo_dtype& dtype, const std::vector<std::int64_t>& shape, unsigned char byte) {
  array out;
  out.dtype = dtype;
  out.shape = shape;
  out.bytes.assign(static_cast<std::size_t>(out.count()) * dtype.bits / 8, byte);
  return out;
}

}  // namespace hosts
