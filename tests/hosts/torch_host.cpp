// Schemas, the dispatcher, and torch's functions; with VELO_TORCH_2_9 those of that release alone.
#include "torch_host.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <type_traits>

namespace hosts::torch {
namespace {

constexpr std::int32_t cpu = 31, meta = 37;
constexpr velo_dtype dtypes[] = {
    {VELO_DTYPE_FLOAT, 32, 1}, {VELO_DTYPE_BFLOAT, 16, 1}, {VELO_DTYPE_INT, 64, 1},
    {VELO_DTYPE_INT, 32, 1},   {VELO_DTYPE_FLOAT, 64, 1},  {VELO_DTYPE_FLOAT, 16, 1},
    {VELO_DTYPE_INT, 8, 1},    {VELO_DTYPE_INT, 16, 1},    {VELO_DTYPE_UINT, 8, 1},
    {VELO_DTYPE_UINT, 16, 1},  {VELO_DTYPE_UINT, 32, 1},   {VELO_DTYPE_BOOL, 8, 1}};
constexpr std::int32_t first_dtype = 70;

bool same(const velo_dtype& a, const velo_dtype& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::int32_t number_of(const velo_dtype& dtype) {
  for (int i = 0; i < 12; ++i) {
    if (same(dtypes[i], dtype)) return first_dtype + i;
  }
  return 9;  // complex64 to torch, of which velo knows nothing
}

std::vector<std::int64_t> compact(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out(shape.size());
  std::int64_t next = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    out[d] = next;
    next *= std::max<std::int64_t>(shape[d], 1);
  }
  return out;
}

struct tensor {
  unsigned char* data;
  std::int32_t dtype, device;
  std::vector<std::int64_t> sizes, strides;
  std::vector<unsigned char> memory;  // of results and copies
};

using kernel = void (*)(std::uint64_t*, std::uint64_t, std::uint64_t);

struct entry {
  schema text;
  std::map<std::string, kernel> kernels;  // by key
};

struct library {
  std::string key;  // "" for definitions
  std::vector<std::string> names;
};

// Everything that is alive, by kind.
class registry {
 public:
  template <class T>
  T* add(std::set<void*>& of, T* made) {
    const std::lock_guard<std::mutex> lock(mutex_);
    of.insert(made);
    return made;
  }
  template <class T>
  void remove(std::set<void*>& of, T* gone) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (of.erase(gone) == 0)
      ++wrong;
    else
      delete gone;
  }
  std::set<void*> tensors, cells, lists, texts;
  std::atomic<long> wrong{0};
  books count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto of = [](const std::set<void*>& all) { return static_cast<long>(all.size()); };
    return {of(tensors), of(cells), of(lists), of(texts), wrong};
  }

 private:
  std::mutex mutex_;
};

using list = std::vector<std::uint64_t>;

registry alive;
std::map<std::string, entry> operators;
std::vector<std::string> order;
std::atomic<long> left{-1}, loop_count{0}, copy_count{0};
std::atomic<int> threads{1};
std::atomic<std::uint64_t> version{std::uint64_t{2} << 56 | std::uint64_t{15} << 48};
thread_local bool records = true;

bool fails() {
  return left >= 0 && left.fetch_sub(1) == 0;
}

template <class T>
std::uint64_t bits(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    std::uint64_t out = 0;
    static_assert(sizeof(T) <= sizeof out);
    std::memcpy(&out, &value, sizeof(T));
    return out;
  }
}

template <class T>
T from(std::uint64_t value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(value);
  } else {
    T out;
    std::memcpy(&out, &value, sizeof(T));
    return out;
  }
}

std::int32_t implement(library& self, const char* name, kernel function) {
  if (fails() || operators.count(name) == 0) return 1;
  operators[name].kernels[self.key] = function;
  self.names.emplace_back(name);
  return 0;
}

// ---- schemas

[[noreturn]] void wrong_schema(const std::string& text) {
  throw std::runtime_error("no schema: " + text);
}

value parse_default(const argument& a, const std::string& text) {
  if (text == "None" && a.optional) return {};
  if (a.type == "int") return value(std::int64_t{std::stoll(text)});
  if (a.type == "float") return value(std::stod(text));
  if (a.type == "bool" && (text == "True" || text == "False")) return value(text == "True");
  wrong_schema(a.name + "=" + text);
}

argument parse_argument(const std::string& text, char& letter) {
  argument out;
  const std::size_t space = text.find(' '), equals = text.find('=');
  if (space == text.npos) wrong_schema(text);
  out.name = text.substr(space + 1, equals == text.npos ? text.npos : equals - space - 1);
  out.type = text.substr(0, space);
  out.optional = out.type.back() == '?';
  if (out.optional) out.type.pop_back();
  if (const std::size_t open = out.type.find('('); open != std::string::npos) {
    if (out.type.substr(open, 4) != std::string("(") + letter++ + "!)") wrong_schema(text);
    out.written = true;
    out.type.erase(open, 4);
  }
  const std::set<std::string> types = {"Tensor", "Tensor[]", "int", "float",
                                       "bool",   "int[]",    "str"};
  if (types.count(out.type) == 0) wrong_schema(text);
  out.has_default = equals != text.npos;
  if (out.has_default) out.initial = parse_default(out, text.substr(equals + 1));
  return out;
}

schema parse(const std::string& text) {
  schema out;
  out.text = text;
  const std::size_t open = text.find('('), arrow = text.find(") -> ");
  if (arrow == text.npos) wrong_schema(text);
  out.name = text.substr(0, open);
  std::istringstream arguments(text.substr(open + 1, arrow - open - 1));
  char letter = 'a';
  for (std::string one; std::getline(arguments, one, ',');) {
    out.arguments.push_back(parse_argument(one.substr(one.front() == ' ' ? 1 : 0), letter));
    const std::size_t count = out.arguments.size();
    if (count > 1 && out.arguments[count - 2].has_default && !out.arguments[count - 1].has_default)
      wrong_schema("a default before " + one);
  }
  const std::string results = text.substr(arrow + 5);
  for (std::size_t at = 0; (at = results.find("Tensor", at)) != results.npos; at += 6)
    ++out.results;
  if (out.results == 0 && results != "()") wrong_schema(text);
  return out;
}

// ---- values on the stack

std::uint64_t tensor_of(array& data, const value& how) {
  auto* made = alive.add(alive.tensors, new tensor{});
  made->data = how.meta ? nullptr : data.bytes.data();
  made->dtype = number_of(data.dtype);
  made->device = how.meta ? meta : cpu;
  made->sizes = data.shape;
  made->strides = how.strides.empty() ? compact(data.shape) : how.strides;
  return bits(made);
}

std::uint64_t put(const argument& a, const value& v) {
  if (v.is == value::kind::none) {
    if (!a.optional) throw std::invalid_argument(a.name + " is missing");
    return 0;
  }
  std::uint64_t out = 0;
  if (a.type == "Tensor") {
    out = tensor_of(*v.data, v);
  } else if (a.type == "Tensor[]" || a.type == "int[]") {
    auto* made = alive.add(alive.lists, new list);
    for (array* item : v.list) made->push_back(tensor_of(*item, v));
    for (const std::int64_t item : v.ints) made->push_back(bits(item));
    out = bits(made);
  } else if (a.type == "str") {
    out = bits(alive.add(alive.texts, new std::string(v.text)));
  } else {
    out = a.type == "float" ? bits(v.real) : bits(v.integer);
  }
  if (!a.optional) return out;
#ifdef VELO_TORCH_2_9
  return bits(new std::uint64_t(out));  // freed by `delete`, which the books do not see
#else
  return bits(alive.add(alive.cells, new std::uint64_t(out)));
#endif
}

array taken(std::uint64_t handle) {
  auto* made = from<tensor*>(handle);
  array out;
  out.dtype = made->dtype == 9 ? velo_dtype{} : dtypes[made->dtype - first_dtype];
  out.shape = made->sizes;
  out.bytes = made->memory;
  if (made->strides != compact(made->sizes)) throw std::runtime_error("a result is not compact");
  alive.remove(alive.tensors, made);
  return out;
}

const char* key_of(const std::vector<value>& values) {
  const char* key = "CPU";
  for (const value& v : values) {
    if (v.meta && std::strcmp(key, "CPU") == 0) key = "Meta";
    if (v.negative) key = "Negative";
  }
  return key;
}

}  // namespace

std::vector<std::string> defined() {
  return order;
}

schema schema_of(const std::string& name) {
  return operators.at(name).text;
}

std::vector<array> call(const std::string& name, const std::map<std::string, value>& given) {
  const entry& op = operators.at(name);
  const schema& s = op.text;
  std::vector<std::uint64_t> stack(std::max(s.arguments.size(), s.results));
  std::vector<value> values;
  std::size_t used = 0;
  for (std::size_t i = 0; i < s.arguments.size(); ++i) {
    const auto found = given.find(s.arguments[i].name);
    values.push_back(found != given.end() ? found->second : s.arguments[i].initial);
    used += found != given.end() ? 1 : 0;
    stack[i] = put(s.arguments[i], values.back());
  }
  if (used != given.size()) throw std::invalid_argument(name + ": an argument it does not have");
  op.kernels.at(key_of(values))(stack.data(), s.arguments.size(), s.results);
  std::vector<array> out;
  for (std::size_t r = 0; r < s.results; ++r) out.push_back(taken(stack[r]));
  return out;
}

books count() {
  return alive.count();
}

void fail_after(long calls) {
  left = calls;
}

long calls_left() {
  return left;
}

void set_threads(int count) {
  threads = count;
}

long loops() {
  return loop_count;
}

long copies() {
  return copy_count;
}

bool recording() {
  return records;
}

}  // namespace hosts::torch

using namespace hosts::torch;

namespace at {
__attribute__((visibility("default"))) int get_num_threads();
int get_num_threads() {
  return threads;
}
}  // namespace at

extern "C" {

void torch_host_version(int major, int minor) {
  version = static_cast<std::uint64_t>(major) << 56 | static_cast<std::uint64_t>(minor) << 48;
}
std::uint64_t aoti_torch_abi_version() {
  return version;
}
std::int32_t aoti_torch_device_type_cpu() {
  return cpu;
}
std::int32_t aoti_torch_device_type_meta() {
  return meta;
}
#define DTYPE(name, index)                 \
  std::int32_t aoti_torch_dtype_##name() { \
    return first_dtype + (index);          \
  }
DTYPE(float32, 0)
DTYPE(bfloat16, 1)
DTYPE(int64, 2)
DTYPE(int32, 3)
DTYPE(float64, 4)
DTYPE(float16, 5)
DTYPE(int8, 6)
DTYPE(int16, 7)
DTYPE(uint8, 8)
DTYPE(uint16, 9)
DTYPE(uint32, 10)
DTYPE(bool, 11)
#undef DTYPE

// ---- libraries

std::int32_t aoti_torch_library_init_fragment(const char* ns, const char*, std::uint32_t,
                                              library** out) {
  if (fails() || std::strcmp(ns, "velo") != 0) return 1;
  *out = new library;
  return 0;
}
std::int32_t aoti_torch_library_init_impl(const char* ns, const char* key, const char*,
                                          std::uint32_t, library** out) {
  if (fails() || std::strcmp(ns, "velo") != 0) return 1;
  *out = new library{key, {}};
  return 0;
}
std::int32_t aoti_torch_library_def(library* self, const char* text) {
  if (fails()) return 1;
  const schema made = parse(text);
  if (operators.count(made.name) != 0) return 1;
  operators[made.name].text = made;
  order.push_back(made.name);
  self->names.push_back(made.name);
  return 0;
}
std::int32_t aoti_torch_library_impl(library* self, const char* name, kernel function) {
  return implement(*self, name, function);
}
std::int32_t aoti_torch_delete_library_object(library* self) {
  for (const std::string& name : self->names) {
    if (self->key.empty()) {
      operators.erase(name);
      order.erase(std::find(order.begin(), order.end(), name));
    } else if (operators.count(name) != 0) {
      operators[name].kernels.erase(self->key);
    }
  }
  delete self;
  return 0;
}

// ---- tensors

std::int32_t aoti_torch_get_data_ptr(tensor* self, void** out) {
  *out = self->data;
  return fails() ? 1 : 0;
}
std::int32_t aoti_torch_get_dim(tensor* self, std::int64_t* out) {
  *out = static_cast<std::int64_t>(self->sizes.size());
  return fails() ? 1 : 0;
}
std::int32_t aoti_torch_get_sizes(tensor* self, std::int64_t** out) {
  *out = self->sizes.data();
  return fails() ? 1 : 0;
}
std::int32_t aoti_torch_get_strides(tensor* self, std::int64_t** out) {
  *out = self->strides.data();
  return fails() ? 1 : 0;
}
std::int32_t aoti_torch_get_dtype(tensor* self, std::int32_t* out) {
  *out = self->dtype;
  return fails() ? 1 : 0;
}
std::int32_t aoti_torch_get_device_type(tensor* self, std::int32_t* out) {
  *out = self->device;
  return fails() ? 1 : 0;
}
std::int32_t aoti_torch_empty_strided(std::int64_t rank, const std::int64_t* sizes,
                                      const std::int64_t* strides, std::int32_t dtype,
                                      std::int32_t device, std::int32_t, tensor** out) {
  if (fails()) return 1;
  auto* made = alive.add(alive.tensors, new tensor{nullptr, dtype, device, {}, {}, {}});
  made->sizes.assign(sizes, sizes + rank);
  made->strides.assign(strides, strides + rank);
  std::size_t bytes = dtypes[dtype - first_dtype].bits / 8;
  for (const std::int64_t size : made->sizes) bytes *= static_cast<std::size_t>(size);
  if (device == cpu) made->memory.assign(bytes, 0xcd);
  made->data = made->memory.data();
  *out = made;
  return 0;
}
std::int32_t aoti_torch_copy_(tensor* to, tensor* from, std::int32_t) {
  if (fails() || records) return 1;
  ++copy_count;
  const std::size_t width = dtypes[to->dtype - first_dtype].bits / 8;
  std::vector<std::int64_t> index(to->sizes.size());
  for (std::size_t at = 0; at < to->memory.size(); at += width) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * from->strides[d];
    std::memcpy(to->data + at, from->data + offset * static_cast<std::int64_t>(width), width);
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == to->sizes[d];) index[d] = 0;
  }
  return 0;
}
std::int32_t aoti_torch_delete_tensor_object(tensor* self) {
  alive.remove(alive.tensors, self);
  return 0;
}
bool aoti_torch_grad_mode_is_enabled() {
  return records;
}
void aoti_torch_grad_mode_set_enabled(bool enabled) {
  records = enabled;
}

// ---- from 2.10 and 2.13 on

#ifndef VELO_TORCH_2_9
std::int32_t torch_library_impl(library* self, const char* name, kernel function,
                                std::uint64_t against) {
  return against > version ? 1 : implement(*self, name, function);
}
std::int32_t torch_get_const_data_ptr(tensor* self, const void** out) {
  *out = self->data;
  return fails() ? 1 : 0;
}
// Reading a list fails for a wrong index alone: what it holds must always be reachable.
std::int32_t torch_list_size(list* self, std::size_t* out) {
  *out = self->size();
  return 0;
}
std::int32_t torch_list_get_item(list* self, std::size_t index, std::uint64_t* out) {
  if (index >= self->size()) return 1;
  *out = (*self)[index];
  return 0;
}
std::int32_t torch_delete_list(list* self) {
  alive.remove(alive.lists, self);
  return 0;
}
std::int32_t torch_string_length(std::string* self, std::size_t* out) {
  *out = self->size();
  return fails() ? 1 : 0;
}
std::int32_t torch_string_c_str(std::string* self, const char** out) {
  *out = self->c_str();
  return fails() ? 1 : 0;
}
std::int32_t torch_delete_string(std::string* self) {
  alive.remove(alive.texts, self);
  return 0;
}
std::int32_t torch_parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                                void (*run)(std::int64_t, std::int64_t, void*), void* user) {
  ++loop_count;
  if (fails()) return 1;
  const std::int64_t parts = std::min<std::int64_t>(threads, (end - begin + grain - 1) / grain);
  std::vector<std::thread> others;
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t from = begin + (end - begin) * p / parts;
    const std::int64_t to = begin + (end - begin) * (p + 1) / parts;
    others.emplace_back(run, from, to, user);
  }
  for (std::thread& other : others) other.join();
  return 0;
}
std::int32_t torch_delete_stable_ivalue(std::uint64_t* cell) {
  alive.remove(alive.cells, cell);
  return 0;
}
const char* torch_exception_get_what_without_backtrace() {
  return "said by torch";
}
#endif
}
