// A library object of torch's dispatcher: what it registered goes with it, unless it is kept. Every
// function throws a refusal where torch refuses.
#pragma once

#include <string>

#include "capi/adapters/torch/abi.hpp"

namespace velo::adapters {

// The binding that velo_torch_register() made; throws before a successful call of it.
const torch::binding& torch_in_use();

class torch_library {
 public:
  explicit torch_library(const torch::binding& torch) : torch_(torch) {}
  ~torch_library();
  torch_library(const torch_library&) = delete;
  torch_library& operator=(const torch_library&) = delete;

  // One of the two, once.
  void open_definitions(const char* name_space);
  void open_kernels(const char* name_space, const char* key);

  void define(const std::string& schema);
  void implement(const std::string& name, torch::kernel kernel);
  torch::library keep();

 private:
  void must(torch::error failed, const std::string& what) const;

  const torch::binding& torch_;
  torch::library made_ = nullptr;
  std::string name_space_;
};

}  // namespace velo::adapters
