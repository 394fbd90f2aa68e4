// A host that loads AOT kernels as MindSpore does: opened lazily and locally at the first launch,
// parameters as raw arrays, a number back, closed with the kernel. Its users see the number only.
#pragma once

#include <string>
#include <vector>

#include "library.hpp"
#include "samples.hpp"

namespace hosts {

class mindspore_kernel {
 public:
  mindspore_kernel(const char* path, const std::string& symbol)
      : library_(path, RTLD_LAZY | RTLD_LOCAL), launch_(library_.function<aot>(symbol)) {}

  void launch(const std::vector<named_array>& inputs, std::vector<named_array>& outputs,
              const char* dtype_of_first = nullptr, void* stream = nullptr) {
    std::vector<void*> params;
    std::vector<int> ndims;
    std::vector<std::vector<std::int64_t>> sizes;
    std::vector<std::int64_t*> shapes;
    std::vector<const char*> dtypes;
    const auto add = [&](const array& a) {
      params.push_back(const_cast<unsigned char*>(a.bytes.data()));
      ndims.push_back(static_cast<int>(a.shape.size()));
      sizes.push_back(a.shape);
      dtypes.push_back(dtype_name(a.dtype));
    };
    for (const named_array& in : inputs) add(in.data);
    for (const named_array& out : outputs) add(out.data);
    for (auto& shape : sizes) shapes.push_back(shape.data());
    if (dtype_of_first != nullptr) dtypes[0] = dtype_of_first;
    // `extra` is an object of the framework's; a kernel that touched this one would crash.
    void* const extra = reinterpret_cast<void*>(16);
    const int result = launch_(static_cast<int>(params.size()), params.data(), ndims.data(),
                               shapes.data(), dtypes.data(), stream, extra);
    if (result != 0) throw host_error(std::to_string(result), last_error(library_));
  }

  const library& adapters() const { return library_; }

  static const char* dtype_name(const velo_dtype& dtype) {
    if (dtype.code == VELO_DTYPE_BFLOAT) return "bfloat16";
    if (dtype.code == VELO_DTYPE_FLOAT) {
      return dtype.bits == 16 ? "float16" : dtype.bits == 32 ? "float32" : "float64";
    }
    if (dtype.bits == 8) return dtype.code == VELO_DTYPE_INT ? "int8" : "uint8";
    return dtype.bits == 32 ? "int32" : "int64";
  }

 private:
  using aot = int(int, void**, int*, std::int64_t**, const char**, void*, void*);
  library library_;
  aot* launch_;
};

}  // namespace hosts
