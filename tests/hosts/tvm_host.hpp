// A host that calls tvm-ffi's packed functions: tagged values, tensors as bare DLTensors or as
// counted objects, errors through the raise function this program exports as tvm-ffi does.
#pragma once

#include <cstring>
#include <deque>

#include "library.hpp"
#include "samples.hpp"

namespace hosts {

struct tvm_value {
  std::int32_t type;
  std::uint32_t small_length;
  union {
    std::int64_t integer;
    double real;
    void* pointer;
    char small[8];
  };
};

struct tvm_object {
  std::uint64_t references;
  std::int32_t type;
  std::uint32_t padding;
  void (*deleter)(void*, int);
};
struct tvm_tensor {
  tvm_object header;
  velo_tensor tensor;
};
struct tvm_bytes {
  tvm_object header;
  const char* data;
  std::size_t size;
};
struct tvm_shape {
  tvm_object header;
  const std::int64_t* data;
  std::size_t size;
};
struct tvm_array {
  tvm_object header;
  void* data;
  std::int64_t size, capacity;
  void (*data_deleter)(void*);
};

// Values of one call; all of them live as long as this. Objects' counts must not change.
class tvm_arguments {
 public:
  void none() { add(0).integer = 0; }
  void integer(std::int64_t value) { add(1).integer = value; }
  void boolean(bool value) { add(2).integer = value ? 1 : 0; }
  void real(double value) { add(3).real = value; }
  void bare_tensor(const velo_tensor& view) {
    bare_.push_back(view);
    add(7).pointer = &bare_.back();
  }
  void tensor_object(const velo_tensor& view) {
    tensors_.push_back({header(70), view});
    add(70).pointer = &tensors_.back();
  }
  void string(const std::string& text);
  void shape(const std::vector<std::int64_t>& list) {
    shapes_.push_back({header(69), list.data(), list.size()});
    add(69).pointer = &shapes_.back();
  }
  void array_of(const std::vector<std::int64_t>& list);
  void array_of_tensors(const std::vector<velo_tensor>& views);
  void other(std::int32_t type) { add(type).pointer = nullptr; }
  void put(const attribute& a, bool as_array);

  const std::vector<tvm_value>& values() const { return values_; }
  bool counts_unchanged() const;

 private:
  void add_array(const std::vector<tvm_value>& items);
  tvm_object header(std::int32_t type) const { return {1, type, 0, nullptr}; }
  tvm_value& add(std::int32_t type) {
    values_.push_back({type, 0, {0}});
    return values_.back();
  }
  std::vector<tvm_value> values_;
  std::deque<velo_tensor> bare_;
  std::deque<tvm_tensor> tensors_;
  std::deque<tvm_bytes> strings_;
  std::deque<tvm_shape> shapes_;
  std::deque<tvm_array> arrays_;
  std::deque<std::vector<tvm_value>> items_;
};

class tvm_function {
 public:
  tvm_function(const char* path, const std::string& name)
      : library_(path, RTLD_LAZY | RTLD_LOCAL),
        call_(library_.function<packed>("__tvm_ffi_" + name)) {}
  void operator()(const tvm_arguments& args) const;

 private:
  using packed = int(void*, const tvm_value*, std::int32_t, tvm_value*);
  library library_;
  packed* call_;
};

}  // namespace hosts
