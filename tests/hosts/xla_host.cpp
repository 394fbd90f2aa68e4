// Frames, the function table, and a small thread pool.
#include "xla_host.hpp"

#include <algorithm>

namespace hosts {
namespace {

struct extension {
  std::size_t struct_size;
  int type;
  extension* next;
};
struct version {
  std::size_t struct_size;
  extension* extensions;
  int major, minor;
};
struct metadata {
  std::size_t struct_size;
  version api_version;
  unsigned traits;
  std::int64_t state_type_id;
};
struct metadata_request {
  extension base;
  metadata* answer;
};
struct buffer {
  std::size_t struct_size;
  extension* extensions;
  int dtype;
  void* data;
  std::int64_t rank;
  std::int64_t* dims;
};
struct list {
  std::size_t struct_size;
  extension* extensions;
  std::int64_t size;
  int* types;
  void** items;
};
struct span {
  const char* text;
  std::size_t length;
};
struct attributes_list {
  std::size_t struct_size;
  extension* extensions;
  std::int64_t size;
  int* types;
  span** names;
  void** items;
};
struct scalar {
  int dtype;
  void* value;
};
struct numbers {
  int dtype;
  std::size_t size;
  const void* data;
};
struct create_error {
  std::size_t struct_size;
  extension* extensions;
  const char* message;
  int code;
};
struct destroy_error {
  std::size_t struct_size;
  extension* extensions;
  xla_error* error;
};
struct schedule {
  std::size_t struct_size;
  extension* extensions;
  xla_pool* pool;
  void (*task)(void*);
  void* data;
};
struct count_threads {
  std::size_t struct_size;
  extension* extensions;
  xla_pool* pool;
  std::int64_t* count;
};
struct table {
  std::size_t struct_size;
  extension* extensions;
  version api_version;
  void* internal;
  xla_error* (*error_create)(create_error*);
  void* error_message;
  void (*error_destroy)(destroy_error*);
  void* other[8];
  xla_error* (*pool_schedule)(schedule*);
  xla_error* (*pool_count)(count_threads*);
  void* later[5];
};
struct frame {
  std::size_t struct_size;
  extension* extensions;
  const table* api;
  xla_pool* context;
  int stage;
  list args, rets;
  attributes_list attrs;
  void* future;
};

xla_error* create(create_error* args) {
  ++xla_handler::live_errors;
  return new xla_error{args->message, args->code};
}

void destroy(destroy_error* args) {
  --xla_handler::live_errors;
  delete args->error;
}

const table api = {sizeof(table),
                   nullptr,
                   {sizeof(version), nullptr, 0, 3},
                   nullptr,
                   create,
                   nullptr,
                   destroy,
                   {},
                   [](schedule* args) -> xla_error* {
                     if (args->pool == nullptr || !args->pool->available) {
                       create_error none = {sizeof none, nullptr, "no pool", 14};
                       return create(&none);
                     }
                     args->pool->schedule(args->task, args->data);
                     return nullptr;
                   },
                   [](count_threads* args) -> xla_error* {
                     *args->count = 3;
                     return nullptr;
                   },
                   {}};

int dtype_number(const velo_dtype& dtype) {
  if (dtype.code == VELO_DTYPE_BFLOAT) return 16;
  if (dtype.code == VELO_DTYPE_FLOAT) return dtype.bits == 16 ? 10 : dtype.bits == 32 ? 11 : 12;
  if (dtype.bits == 8) return dtype.code == VELO_DTYPE_INT ? 2 : 6;
  return dtype.bits == 32 ? 4 : 5;
}

struct buffers {
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<buffer> items;
  std::vector<void*> pointers;
  std::vector<int> types;

  explicit buffers(const std::vector<named_array>& arrays) {
    for (const named_array& a : arrays) shapes.push_back(a.data.shape);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const array& a = arrays[i].data;
      items.push_back({sizeof(buffer), nullptr, dtype_number(a.dtype),
                       const_cast<unsigned char*>(a.bytes.data()),
                       static_cast<std::int64_t>(a.shape.size()), shapes[i].data()});
    }
    for (buffer& b : items) pointers.push_back(&b);
    types.assign(items.size(), 1);
  }
  list view() {
    return {sizeof(list), nullptr, static_cast<std::int64_t>(items.size()), types.data(),
            pointers.data()};
  }
};

// Attributes sorted by name, in the types jax gives them: int64, float64, pred, string, int64
// array.
struct typed_attributes {
  std::map<std::string, attribute> sorted;
  std::deque<span> texts;
  std::deque<scalar> scalars;
  std::deque<numbers> arrays;
  std::vector<span*> names;
  std::vector<void*> items;
  std::vector<int> types;

  typed_attributes(const std::vector<attribute>& given, const std::string& fields) {
    for (const attribute& a : given) sorted[a.name] = a;
    if (!fields.empty()) sorted["fields"] = {"fields", VELO_VALUE_STRING, 0, 0, fields, {}};
    for (auto& [name, a] : sorted) {
      texts.push_back({name.data(), name.size()});
      names.push_back(&texts.back());
      add(a);
    }
  }
  void add(attribute& a) {
    if (a.kind == VELO_VALUE_STRING) {
      texts.push_back({a.text.data(), a.text.size()});
      types.push_back(4);
      items.push_back(&texts.back());
    } else if (a.kind == VELO_VALUE_INTS) {
      arrays.push_back({5, a.list.size(), a.list.data()});
      types.push_back(1);
      items.push_back(&arrays.back());
    } else {
      const bool real = a.kind == VELO_VALUE_FLOAT;
      const int dtype = real ? 12 : a.kind == VELO_VALUE_NONE ? 1 : 5;
      scalars.push_back({dtype, real ? static_cast<void*>(&a.real) : &a.integer});
      types.push_back(3);
      items.push_back(&scalars.back());
    }
  }
  attributes_list view() {
    return {sizeof(attributes_list),
            nullptr,
            static_cast<std::int64_t>(items.size()),
            types.data(),
            names.data(),
            items.data()};
  }
};

}  // namespace

std::atomic<long> xla_handler::live_errors{0};

xla_pool::xla_pool(int count) {
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
}

xla_pool::~xla_pool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
  for (auto& [task, data] : queue_) task(data);
}

void xla_pool::schedule(void (*task)(void*), void* data) {
  ++scheduled;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.emplace_back(task, data);
  }
  changed_.notify_one();
}

void xla_pool::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto [task, data] = queue_.front();
    queue_.pop_front();
    lock.unlock();
    task(data);
    lock.lock();
  }
}

xla_metadata_answer xla_handler::metadata(std::size_t struct_size) const {
  struct metadata answer = {struct_size, {sizeof(version), nullptr, -1, -1}, 77, -1};
  metadata_request request = {{sizeof request, 1, nullptr}, &answer};
  frame f{};
  f.struct_size = offsetof(frame, future);
  f.extensions = &request.base;
  f.api = &api;
  if (call_(&f) != nullptr) throw std::runtime_error("a metadata request was answered by an error");
  if (answer.state_type_id != -1) throw std::runtime_error("written beyond the first release");
  return {answer.api_version.major, answer.api_version.minor, answer.traits};
}

void xla_handler::execute(const std::vector<named_array>& inputs, std::vector<named_array>& outputs,
                          const std::vector<attribute>& attributes, const std::string& fields,
                          xla_pool* pool, int dtype_of_first, bool share_buffers) const {
  buffers in(inputs), out(outputs);
  typed_attributes attrs(attributes, fields);
  if (dtype_of_first != 0) in.items[0].dtype = dtype_of_first;
  for (std::size_t o = 0; share_buffers && o < outputs.size(); ++o) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].field == outputs[o].field) in.items[i].data = out.items[o].data;
    }
  }
  frame f = {sizeof f, nullptr, &api, pool, 0, in.view(), out.view(), attrs.view(), nullptr};
  for (f.stage = 0; f.stage < 4; ++f.stage) {
    auto* error = static_cast<xla_error*>(call_(&f));
    if (error == nullptr) continue;
    const host_error thrown(std::to_string(error->code), error->message);
    destroy_error args = {sizeof args, nullptr, error};
    destroy(&args);
    throw thrown;
  }
}

}  // namespace hosts
