// Reading values by the kind of their field.
#include "tools/velo/call.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/velo/closest_name.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/messages.hpp"

namespace command {
namespace {

struct dtype_row {
  const char *name, *full_name;
  velo_dtype type;
};
constexpr dtype_row dtypes[] = {
    {"f32", "float32", {VELO_DTYPE_FLOAT, 32, 1}}, {"bf16", "bfloat16", {VELO_DTYPE_BFLOAT, 16, 1}},
    {"f16", "float16", {VELO_DTYPE_FLOAT, 16, 1}}, {"f64", "float64", {VELO_DTYPE_FLOAT, 64, 1}},
    {"i32", "int32", {VELO_DTYPE_INT, 32, 1}},     {"i64", "int64", {VELO_DTYPE_INT, 64, 1}},
    {"i8", "int8", {VELO_DTYPE_INT, 8, 1}},        {"i4", "int4", {VELO_DTYPE_INT, 4, 1}},
    {"u8", "uint8", {VELO_DTYPE_UINT, 8, 1}},      {"u64", "uint64", {VELO_DTYPE_UINT, 64, 1}},
    {"bool", "bool", {VELO_DTYPE_BOOL, 8, 1}}};

[[noreturn]] void refuse(const std::string& name, const std::string& text,
                         const std::string& expected) {
  throw input_error(name + "=" + text + ": expected " + expected);
}

bool read_number(const std::string& text, int64_t& number) {
  char* end = nullptr;
  errno = 0;
  number = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == 0 && errno == 0;
}

int64_t whole(const std::string& name, const std::string& text, const std::string& expected) {
  int64_t number = 0;
  if (!read_number(text, number)) refuse(name, text, expected);
  return number;
}

// "[8, 4096]"
bool read_numbers(const std::string& text, std::vector<int64_t>& all) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  const std::string inside = text.substr(1, text.size() - 2);
  for (std::size_t at = 0; !inside.empty() && at <= inside.size();) {
    const std::size_t comma = std::min(inside.find(',', at), inside.size());
    all.push_back(0);
    if (!read_number(inside.substr(at, comma - at), all.back())) return false;
    at = comma + 1;
  }
  return true;
}

velo_dtype dtype_of(const std::string& name, const std::string& text, std::vector<int64_t>& sizes) {
  const std::string expected =
      "a tensor, as in f32[8,4096] (f32 bf16 f16 f64 i32 i64 i8 i4 u8 u64 bool)";
  const std::size_t bracket = std::min(text.find('['), text.size());
  for (const dtype_row& row : dtypes) {
    if (text.substr(0, bracket) != row.name) continue;
    if (!read_numbers(text.substr(bracket), sizes)) refuse(name, text, expected);
    return row.type;
  }
  refuse(name, text, expected);
}

velo_value value_of(velo_value_kind kind) {
  velo_value made{kind, 0, {0}};
  return made;
}

}  // namespace

std::string dtype_name(velo_dtype type) {
  for (const dtype_row& row : dtypes)
    if (std::memcmp(&row.type, &type, sizeof type) == 0) return row.name;
  return "unknown";
}

bool dtype_called(const std::string& full_name, velo_dtype& type) {
  for (const dtype_row& row : dtypes) {
    if (row.full_name != full_name) continue;
    type = row.type;
    return true;
  }
  return false;
}

std::string shape_name(velo_dtype type, int rank, const int64_t* sizes) {
  std::string all = dtype_name(type) + "[";
  for (int i = 0; i < rank; ++i) all += (i > 0 ? "," : "") + std::to_string(sizes[i]);
  return all + "]";
}

call::call(const velo::context& context, const json_t* describe,
           const std::vector<std::string>& words) {
  const json_t* fields = member(describe, "fields");
  op_ = text(describe, "name");
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      throw input_error(word + ": expected field=value, as in x=f32[8,4096]");
    texts_.push_back(word.substr(0, equals));
    const std::string& name = texts_.back();
    const json_t* found = nullptr;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < json_array_size(fields); ++i) {
      const json_t* field = json_array_get(fields, i);
      names.push_back(text(field, "name"));
      if (text(field, "name") == name) found = field;
    }
    if (found == nullptr) {
      std::string meant = did_you_mean(name, names);
      if (meant.empty())
        for (const std::string& each : names) meant += (meant.empty() ? "; it has " : ", ") + each;
      throw input_error(name + ": " + text(describe, "name") + " has no such field" + meant);
    }
    for (const velo_named_value& before : values_)
      if (name == before.name) throw input_error(name + ": given twice");
    values_.push_back({name.c_str(), read(context, found, word.substr(equals + 1))});
  }
}

velo_value call::read(const velo::context& context, const json_t* field, const std::string& text) {
  const std::string name = command::text(field, "name"), kind = command::text(field, "kind");
  if (kind == "tensor") return read_tensor(name, text);
  if (kind == "ints") return read_list(name, text);
  if (kind == "handle" && command::text(field, "handle") == "velo_pack")
    return read_pack(context, name, text);
  if (kind == "handle" || kind == "tensors")
    refuse(name, text, "nothing: a list of tensors or a handle cannot be written here");
  if (kind == "f64") {
    char* end = nullptr;
    velo_value made = value_of(VELO_VALUE_FLOAT);
    made.as.f = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0) refuse(name, text, "a number");
    return made;
  }
  const bool starts_number =
      !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  if (kind == "text" || (kind == "enumeration" && !starts_number)) {
    texts_.push_back(text);
    velo_value made = value_of(VELO_VALUE_STRING);
    made.as.s = texts_.back().c_str();
    return made;
  }
  velo_value made = value_of(VELO_VALUE_INT);
  if (kind == "bool" && (text == "true" || text == "false")) {
    made.as.i = text == "true" ? 1 : 0;
  } else {
    made.as.i = whole(name, text, kind == "bool" ? "0, 1, true or false" : "an integer");
  }
  return made;
}

velo_value call::read_tensor(const std::string& name, const std::string& text) {
  std::vector<int64_t> sizes;
  const velo_dtype type = dtype_of(name, text, sizes);
  tensors_.emplace_back(static_cast<const void*>(nullptr), type,
                        velo::sizes(sizes.data(), static_cast<int32_t>(sizes.size())));
  velo_value made = value_of(VELO_VALUE_TENSOR);
  made.as.tensor = tensors_.back().get();
  return made;
}

velo_value call::read_list(const std::string& name, const std::string& text) {
  lists_.emplace_back();
  if (!read_numbers(text, lists_.back())) refuse(name, text, "a list, as in [0,4,9]");
  ints_.push_back({lists_.back().data(), static_cast<int64_t>(lists_.back().size())});
  velo_value made = value_of(VELO_VALUE_INTS);
  made.as.ints = &ints_.back();
  return made;
}

velo_value call::read_pack(const velo::context& context, const std::string& name,
                           const std::string& text) {
  std::vector<int64_t> sizes;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  const bool marked = text.rfind("pack:", 0) == 0;
  if (marked) desc.dtype = dtype_of(name, text.substr(5), sizes);
  if (!marked || (sizes.size() != 2 && sizes.size() != 3))
    refuse(name, text,
           "a pack, as in pack:f32[64,32] for [k,n], or pack:f32[8,64,32] for 8 experts");
  if (sizes.size() == 3) desc.count = sizes[0];
  desc.weight_only = op_.rfind("weight_quant", 0) == 0;
  desc.k = sizes[sizes.size() - 2];
  desc.n = sizes[sizes.size() - 1];
  try {
    packs_.push_back(velo::pack::create(context, desc));
  } catch (const velo::error& failure) {
    throw input_error(name + "=" + text + ": " + sentence_of(failure));
  }
  velo_value made = value_of(VELO_VALUE_HANDLE);
  made.as.p = packs_.back().get();
  return made;
}

}  // namespace command
