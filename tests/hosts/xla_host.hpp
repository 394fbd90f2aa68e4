// A host that calls XLA FFI handlers as XLA's CPU runtime does: it asks for metadata when it
// registers, passes frames with sorted typed attributes, lends its thread pool, and owns every
// error it is given.
//
// The structs are the host's side of the interface, declared from its published description and
// not shared with the adapters, so that a slip in either shows.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "library.hpp"
#include "samples.hpp"

namespace hosts {

struct xla_error {
  std::string message;
  int code;
};

struct xla_pool {
  explicit xla_pool(int count);
  ~xla_pool();
  void schedule(void (*task)(void*), void* data);

  std::atomic<long> scheduled{0};
  bool available = true;

 private:
  void serve();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

struct xla_metadata_answer {
  int major = -1, minor = -1;
  unsigned traits = 77;
};

class xla_handler {
 public:
  xla_handler(const char* path, const std::string& symbol)
      : library_(path, RTLD_NOW | RTLD_LOCAL), call_(library_.function<handler>(symbol)) {}

  xla_metadata_answer metadata(std::size_t struct_size) const;

  // fields: the attribute of that name, left out when empty.
  void execute(const std::vector<named_array>& inputs, std::vector<named_array>& outputs,
               const std::vector<attribute>& attributes, const std::string& fields, xla_pool* pool,
               int dtype_of_first = 0, bool share_buffers = false) const;

  static std::atomic<long> live_errors;

 private:
  using handler = void*(void*);
  library library_;
  handler* call_;
};

}  // namespace hosts
