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
  std::map<std::string, std::vector<kernel>> kernels;  // by key; the last one serves
};

struct library {
  std::string name_space, key;  // no key: definitions
  std::vector<std::pair<std::string, kernel>> kept;

  std::string whole(const std::string& name) const {
    return name_space == "aten" ? "aten::" + name : name;
  }
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
std::atomic<long> left{-1}, loop_count{0}, copy_count{0}, write_count{0}, attention_count{0};
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
  const std::string whole = self.whole(name);
  if (fails() || operators.count(whole) == 0) return 1;
  operators[whole].kernels[self.key].push_back(function);
  self.kept.emplace_back(whole, function);
  return 0;
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

// The elements in the order of the shape.
void gather(const tensor& from, unsigned char* to) {
  const std::size_t width = dtypes[from.dtype - first_dtype].bits / 8;
  std::size_t count = 1;
  for (const std::int64_t size : from.sizes) count *= static_cast<std::size_t>(size);
  std::vector<std::int64_t> index(from.sizes.size());
  for (std::size_t at = 0; at < count * width; at += width) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * from.strides[d];
    std::memcpy(to + at, from.data + offset * static_cast<std::int64_t>(width), width);
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == from.sizes[d];) index[d] = 0;
  }
}

array taken(std::uint64_t handle, bool strided) {
  auto* made = from<tensor*>(handle);
  array out;
  out.dtype = made->dtype == 9 ? velo_dtype{} : dtypes[made->dtype - first_dtype];
  out.shape = made->sizes;
  out.bytes = made->memory;
  if (made->strides != compact(made->sizes)) {
    if (!strided) throw std::runtime_error("a result is not compact");
    gather(*made, out.bytes.data());
  }
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

// ---- torch's own attention, which gives nothing but sevens

std::int32_t sevens(tensor* like, std::int64_t rank, tensor** out) {
  auto* made = alive.add(alive.tensors, new tensor(*like));
  made->sizes.resize(static_cast<std::size_t>(rank));
  made->strides = compact(made->sizes);
  std::size_t bytes = rank == 3 ? 4 : dtypes[like->dtype - first_dtype].bits / 8;
  made->dtype = rank == 3 ? first_dtype : like->dtype;
  for (const std::int64_t size : made->sizes) bytes *= static_cast<std::size_t>(size);
  made->memory.assign(bytes, 7);
  made->data = made->memory.data();
  *out = made;
  return 0;
}

constexpr char attention_schema[] =
    "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
    "float dropout_p=0.0, bool is_causal=False, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor output, Tensor logsumexp)";
constexpr char attention_backward_schema[] =
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, "
    "Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, "
    "Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor "
    "grad_value)";

void define_own() {
  for (const char* text : {attention_schema, attention_backward_schema}) {
    const schema made = parse(text);
    operators[made.name].text = made;
  }
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
  op.kernels.at(key_of(values)).back()(stack.data(), s.arguments.size(), s.results);
  const bool own = name.rfind("aten::", 0) == 0;  // torch's own results may lie in any order
  std::vector<array> out;
  for (std::size_t r = 0; r < s.results; ++r) out.push_back(taken(stack[r], own));
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

long writes() {
  return write_count;
}

long writes_of(const std::string& name, const std::map<std::string, value>& given) {
  long count = 0;
  for (const argument& a : schema_of(name).arguments) {
    const auto found = given.find(a.name);
    if (!a.written || found == given.end() || found->second.is == value::kind::none) continue;
    count += found->second.data != nullptr ? 1 : static_cast<long>(found->second.list.size());
  }
  return count;
}

bool recording() {
  return records;
}

std::size_t kernels_of(const std::string& name) {
  return operators.at(name).kernels["CPU"].size();
}

long own_attentions() {
  return attention_count;
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
  *out = new library{ns, {}, {}};
  return 0;
}
std::int32_t aoti_torch_library_init_impl(const char* ns, const char* key, const char*,
                                          std::uint32_t, library** out) {
  const bool own = std::strcmp(ns, "aten") == 0;
  if (fails() || (!own && std::strcmp(ns, "velo") != 0)) return 1;
  if (own) define_own();
  *out = new library{ns, key, {}};
  return 0;
}
std::int32_t aoti_torch_library_def(library* self, const char* text) {
  if (fails()) return 1;
  const schema made = parse(text);
  if (operators.count(made.name) != 0) return 1;
  operators[made.name].text = made;
  order.push_back(made.name);
  self->kept.emplace_back(made.name, nullptr);
  return 0;
}
std::int32_t aoti_torch_library_impl(library* self, const char* name, kernel function) {
  return implement(*self, name, function);
}
std::int32_t aoti_torch_delete_library_object(library* self) {
  for (const auto& [name, function] : self->kept) {
    if (self->key.empty()) {
      operators.erase(name);
      order.erase(std::find(order.begin(), order.end(), name));
    } else if (operators.count(name) != 0) {
      auto& kernels = operators[name].kernels[self->key];
      const auto found = std::find(kernels.rbegin(), kernels.rend(), function);
      if (found != kernels.rend()) kernels.erase(std::next(found).base());
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
  if (to == from) {
    ++write_count;
    return 0;
  }
  ++copy_count;
  gather(*from, to->data);
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

// ---- torch's own attention, past the dispatcher

std::int32_t aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu(tensor* query, tensor*,
                                                                        tensor*, double,
                                                                        std::int32_t, tensor**,
                                                                        double*, tensor** out,
                                                                        tensor** logsumexp) {
  ++attention_count;
  if (fails()) return 1;
  return sevens(query, 4, out) + sevens(query, 3, logsumexp);
}
std::int32_t aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu_backward(
    tensor*, tensor* query, tensor* key, tensor* value, tensor*, tensor*, double, std::int32_t,
    tensor**, double*, tensor** dquery, tensor** dkey, tensor** dvalue) {
  ++attention_count;
  if (fails()) return 1;
  return sevens(query, 4, dquery) + sevens(key, 4, dkey) + sevens(value, 4, dvalue);
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
  return "reported by torch";
}
#endif
}
