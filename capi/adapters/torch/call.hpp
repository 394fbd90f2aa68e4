// One call of an operator from torch's dispatcher, and what it owns meanwhile.
//
// Invariant: torch hands over everything on the stack, so every argument is released exactly once,
// on success and on failure, and results go to torch only when the call has succeeded. Inputs that
// the operator takes in no such layout are copied compact by torch; outputs of the caller's are
// not, but torch counts them as written, a fifth of a microsecond each, so that autograd refuses
// to use what it saved of them. Nothing is allocated but results, and texts and lists that are
// longer than usual.
#pragma once

#include <forward_list>
#include <vector>

#include "capi/adapters/call.hpp"
#include "capi/adapters/torch/abi.hpp"
#include "capi/adapters/torch/schema.hpp"

namespace velo::adapters {

class torch_call {
 public:
  // Takes the arguments over; throws nothing.
  torch_call(const torch::binding& torch, const op_info& op, const torch_plan& plan, torch_key key,
             torch::value* stack);
  ~torch_call();
  torch_call(const torch_call&) = delete;
  torch_call& operator=(const torch_call&) = delete;

  void run();                              // throws refusal
  void give_results(torch::value* stack);  // to torch; after run()

 private:
  struct argument {
    torch::value value;
    bool given;
  };
  velo_tensor view(int f, torch::tensor from, bool written);
  void put_arguments();
  void put(int f, torch::value value);
  void put_number(int f, torch::value value);
  void put_list(int f);
  void put_text(int f, torch::string from);
  void read_list(int f, torch::list from);
  velo_status attempt(velo_context context);
  void make_results(std::int64_t count);
  torch::tensor make(int f, int rank, const std::int64_t* sizes, const velo_dtype& dtype);
  void count_writes();
  bool copy_arguments();
  velo_dtype dtype_of(int f, torch::tensor from);
  void must(torch::error failed, int f, const char* what);
  void release(int f, torch::value value);

  const torch::binding& torch_;
  const op_info& op_;
  const torch_plan& plan_;
  const torch_key key_;
  const bool meta_;
  call made_;
  argument arguments_[max_fields];
  torch::tensor results_[max_fields];
  velo_shape shapes_[max_fields];  // of all outputs; the results' views point here
  int results_made_ = 0;
  std::vector<torch::tensor> copies_;
  struct list_items {
    int field;
    torch::error failed;
    std::vector<torch::value> values;
  };
  std::forward_list<list_items> lists_;
  std::forward_list<std::vector<std::int64_t>> numbers_;
  std::forward_list<std::vector<velo_tensor>> views_;
};

}  // namespace velo::adapters
