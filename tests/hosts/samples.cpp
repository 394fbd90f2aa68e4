// The table of samples, and the plain calls that give their results.
#include "samples.hpp"

#include <jansson.h>

#include <cstring>
#include <map>
#include <stdexcept>

namespace hosts {
namespace {

enum class fill { any, positive, index };

struct input {
  const char* field;
  const char* dtype;  // "T": float32 in one sample, bfloat16 in the other
  std::vector<std::int64_t> shape;
  fill how = fill::any;
};

struct entry {
  const char* op;
  std::vector<input> inputs;
  std::vector<attribute> attributes;
  bool counted = true;
};

attribute number(const char* name, std::int64_t value) {
  return {name, VELO_VALUE_INT, value, 0, "", {}};
}
attribute real(const char* name, double value) {
  return {name, VELO_VALUE_FLOAT, 0, value, "", {}};
}
attribute word(const char* name, const char* value) {
  return {name, VELO_VALUE_STRING, 0, 0, value, {}};
}
attribute list(const char* name, std::vector<std::int64_t> value) {
  return {name, VELO_VALUE_INTS, 0, 0, "", std::move(value)};
}

std::vector<entry> table() {
  return {
      {"rms_norm", {{"x", "T", {6, 40}}, {"gamma", "T", {40}}}, {real("epsilon", 1e-3)}},
      {"rms_norm_backward",
       {{"dy", "T", {6, 40}},
        {"x", "T", {6, 40}},
        {"gamma", "T", {40}},
        {"rstd", "f32", {6, 1}, fill::positive}},
       {}},
      {"rms_norm_backward",
       {{"dy", "T", {6, 40}},
        {"x", "T", {6, 40}},
        {"gamma", "T", {40}},
        {"rstd", "f32", {6, 1}, fill::positive},
        {"dgamma", "f32", {40}}},
       {number("accumulate", 1)},
       false},
      {"swiglu", {{"x", "T", {5, 4, 32}}}, {number("dim", 1)}},
      {"swiglu_backward", {{"dy", "T", {5, 2, 32}}, {"x", "T", {5, 4, 32}}}, {number("dim", 1)}},
      {"fusion_attention",
       {{"query", "T", {2, 9, 2, 16}}, {"key", "T", {2, 9, 2, 16}}, {"value", "T", {2, 9, 2, 16}}},
       {real("scale", 0.25), word("sparse_mode", "left_up_causal")}},
      {"fusion_attention",
       {{"query", "T", {9, 2, 16}}, {"key", "T", {9, 2, 16}}, {"value", "T", {9, 2, 16}}},
       {word("layout", "tnd"), list("actual_seq_qlen", {4, 9}), list("actual_seq_kvlen", {4, 9})}},
      {"fusion_attention_backward",
       {{"query", "T", {2, 9, 2, 16}},
        {"key", "T", {2, 9, 2, 16}},
        {"value", "T", {2, 9, 2, 16}},
        {"dy", "T", {2, 9, 2, 16}},
        {"softmax_max", "f32", {2, 2, 9}, fill::positive},
        {"softmax_sum", "f32", {2, 2, 9}, fill::positive},
        {"attention_out", "T", {2, 9, 2, 16}}},
       {real("scale", 0.25)}},
      {"add", {{"a", "T", {3, 7}}, {"b", "T", {3, 7}}}, {}},
      {"cast", {{"x", "T", {3, 7}}}, {word("dtype", "bfloat16")}},
      {"embedding", {{"ids", "i64", {2, 3}, fill::index}, {"table", "T", {4, 16}}}, {}},
      {"embedding_backward",
       {{"ids", "i32", {2, 3}, fill::index}, {"dy", "T", {2, 3, 16}}},
       {number("rows", 4)}},
      {"cross_entropy",
       {{"logits", "T", {6, 11}}, {"targets", "i64", {6}, fill::index}},
       {word("reduction", "sum")}},
      {"cross_entropy_backward",
       {{"dloss", "f32", {}, fill::positive},
        {"logits", "T", {6, 11}},
        {"targets", "i64", {6}, fill::index},
        {"lse", "f32", {6}, fill::positive}},
       {word("reduction", "sum")}},
      {"matmul", {{"a", "T", {12, 20}}, {"b", "T", {24, 20}}}, {number("transpose_b", 1)}},
      {"matmul", {{"a", "T", {12, 20}}, {"b", "T", {20, 24}}, {"bias", "f32", {24}}}, {}},
      {"matmul",
       {{"a", "T", {12, 20}}, {"b", "T", {20, 24}}, {"c", "T", {12, 24}}},
       {number("accumulate", 1)},
       false},
      {"matmul_add_fp32",
       {{"total_input", "T", {12, 20}}, {"grad_output", "T", {12, 24}}, {"grad", "f32", {24, 20}}},
       {}},
      {"apply_fused_adamw",
       {{"grad", "T", {300}},
        {"param", "T", {300}},
        {"m", "f32", {300}},
        {"v", "f32", {300}, fill::positive}},
       {number("step", 3), real("lr", 0.01)}},
      {"global_norm", {{"x", "T", {5, 60}}}, {real("max_norm", 0.5)}},
      {"rotary_position_embedding",
       {{"x", "T", {2, 5, 3, 16}}, {"cos", "f32", {1, 5, 1, 16}}, {"sin", "f32", {1, 5, 1, 16}}},
       {word("mode", "interleaved")}},
      {"rotary_position_embedding_backward",
       {{"dy", "T", {2, 5, 3, 16}},
        {"cos", "f32", {1, 5, 1, 16}},
        {"sin", "f32", {1, 5, 1, 16}},
        {"x", "T", {2, 5, 3, 16}}},
       {word("mode", "interleaved")}},
  };
}

velo_dtype dtype_of(const std::string& name, bool bf16) {
  if (name == "f32" || (name == "T" && !bf16)) return {VELO_DTYPE_FLOAT, 32, 1};
  if (name == "T") return {VELO_DTYPE_BFLOAT, 16, 1};
  return {VELO_DTYPE_INT, static_cast<std::uint8_t>(name == "i64" ? 64 : 32), 1};
}

template <class T>
void put(array& out, std::int64_t index, T value) {
  std::memcpy(out.bytes.data() + sizeof(T) * static_cast<std::size_t>(index), &value, sizeof value);
}

array numbers(const input& what, bool bf16) {
  array out = filled(dtype_of(what.dtype, bf16), what.shape, 0);
  std::uint32_t state = 7 + static_cast<std::uint32_t>(out.count());
  for (const char* c = what.field; *c != 0; ++c)
    state = state * 31 + static_cast<unsigned char>(*c);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float unit = static_cast<float>(state >> 8) / static_cast<float>(1u << 24);
    const float value = what.how == fill::positive ? 0.5f + unit : 2 * unit - 1;
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const bool index = what.how == fill::index;
    if (index && out.dtype.bits == 64)
      put<std::int64_t>(out, i, state >> 30);
    else if (index)
      put<std::int32_t>(out, i, static_cast<std::int32_t>(state >> 30));
    else if (out.dtype.bits == 16)
      put<std::uint16_t>(out, i, static_cast<std::uint16_t>(bits >> 16));
    else
      put<float>(out, i, value);
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

void must(velo_status status) {
  if (status == VELO_OK) return;
  char text[1024];
  velo_error_text(text, sizeof text, nullptr);
  throw std::runtime_error(text);
}

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

std::vector<sample> make(bool with_attributes) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;
  velo_context context;
  velo_stream stream;
  must(velo_context_create(&desc, &context));
  must(velo_context_stream(context, &stream));
  std::vector<sample> out;
  for (const entry& e : table()) {
    if (!with_attributes && !e.counted) continue;
    for (const bool bf16 : {false, true}) {
      sample s;
      s.op = e.op;
      s.counted = e.counted;
      s.attributes = e.attributes;
      for (const input& in : e.inputs) s.inputs.push_back({in.field, numbers(in, bf16)});
      infer_outputs(context, s);
      if (!with_attributes) s.attributes.clear();
      run_plainly(stream, s);
      out.push_back(std::move(s));
    }
  }
  velo_context_destroy(context);
  return out;
}

// What one of velo's text calls gives, as JSON.
template <class Describe>
json_t* parsed(Describe&& describe) {
  std::uint64_t needed = 0;
  must(describe(nullptr, 0, &needed));
  std::string text(needed, '\0');
  must(describe(text.data(), text.size(), nullptr));
  json_t* root = json_loads(text.c_str(), 0, nullptr);
  if (root == nullptr)
    throw std::runtime_error("velo described itself in something else than JSON");
  return root;
}

std::string names(const std::vector<named_array>& arrays) {
  std::string out;
  for (const named_array& a : arrays) out += (out.empty() ? "" : ",") + a.field;
  return out;
}

}  // namespace

velo_tensor array::view() const {
  return {const_cast<unsigned char*>(bytes.data()),
          {VELO_DEVICE_CPU, 0},
          static_cast<std::int32_t>(shape.size()),
          dtype,
          shape.data(),
          nullptr,
          0};
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
  json_t* root = parsed([&](char* buffer, std::uint64_t capacity, std::uint64_t* needed) {
    return velo_op_describe(op.c_str(), buffer, capacity, needed);
  });
  std::vector<field> out;
  std::size_t i;
  json_t* item;
  json_array_foreach(json_object_get(root, "fields"), i, item)
      out.push_back({json_string_value(json_object_get(item, "name")),
                     json_string_value(json_object_get(item, "kind"))});
  json_decref(root);
  return out;
}

std::int64_t enumerator(const std::string& op, const attribute& a) {
  if (a.kind != VELO_VALUE_STRING) return a.integer;
  json_t* described = parsed([&](char* buffer, std::uint64_t capacity, std::uint64_t* needed) {
    return velo_op_describe(op.c_str(), buffer, capacity, needed);
  });
  std::string name;
  std::size_t i;
  json_t* item;
  json_array_foreach(json_object_get(described, "fields"), i, item) {
    if (a.name == json_string_value(json_object_get(item, "name")))
      name = json_string_value(json_object_get(item, "enum"));
  }
  json_decref(described);
  json_t* all = parsed(velo_describe);
  std::int64_t out = -1;
  json_array_foreach(json_object_get(all, "enums"), i, item) {
    if (name != json_string_value(json_object_get(item, "name"))) continue;
    std::size_t j;
    json_t* value;
    json_array_foreach(json_object_get(item, "values"), j, value) {
      if (a.text == json_string_value(json_object_get(value, "name")))
        out = json_integer_value(json_object_get(value, "value"));
    }
  }
  json_decref(all);
  if (out < 0) throw std::runtime_error("no enumerator " + a.text);
  return out;
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
