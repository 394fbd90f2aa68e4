// The definition of an operator: a rule for its shapes, a way to run, and its kernels.
//
// The spec says which fields an operator has. The operator adds `infer` (it checks the inputs
// against each other, states the shape of each output, and derives the problem: all that a run
// needs to know about the shapes), `run` (the problem on the kernels of one ISA) and its
// kernel_list. Everything else - struct sizes, defaults, NULL, dtype, device, overlap, output
// shapes, choosing, explaining, queueing - is the same for all and lives in ops/call. Invariants:
// `infer` is given every required input, while outputs (those that are read, too) may be NULL; when
// `run` is called, every check has passed, some output has elements, and the problem is the one
// that `infer` derived.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

#include "core/stream/execution.hpp"
#include "ops/operator/kernels.hpp"
#include "ops/operator/output_shapes.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

// A problem is plain data of at most so many bytes. It may point at tensors' elements, never at
// descriptors or lists: a queued call has copies of those.
inline constexpr std::size_t max_problem_bytes = 512;

// Puts a call into its stream, under the lock of the code that orders it among other calls. Throws
// what the stream throws. On an inline stream it does nothing.
class enqueue {
 public:
  template <class F>
  explicit enqueue(const F& f)
      : user_(&f), put_([](const void* user) { (*static_cast<const F*>(user))(); }) {}
  void operator()() const { put_(user_); }

 private:
  const void* user_;
  void (*put_)(const void*);
};

// The functions of an operator that waits for peers. Its run has neither the turn of the
// context nor its threads, and takes the turn while it computes; it runs even if it writes nothing.
// `enter` gets each call that was checked, and may leave notes in the problem for `run`, or for
// `drop`, which is called instead when a failure of the stream drops the call.
struct waiting_calls {
  void (*enter)(const void* args, void* problem, core::stream& on, const enqueue& put);
  void (*drop)(const void* problem) noexcept;
};

struct op_cost;

// `args` is the operator's args struct, completed to this library's size.
struct operator_def {
  void (*infer)(const void* args, void* problem, output_shapes& outputs);
  void (*run)(const void* args, const void* problem, const void* kernels, core::execution& on);
  // Why a kernel does not serve, or nullptr when it does.
  const char* (*reject)(const void* args, const void* problem, const kernel_entry& kernel);
  const kernel_list* kernels;
  std::size_t problem_bytes;
  const waiting_calls* waits = nullptr;
  // Adds to the bytes of the fields what only the operator knows (cost.hpp); nullptr: nothing.
  void (*cost)(const void* args, const void* problem, op_cost& cost) = nullptr;
  // The magnitude of terms that only the operator knows (ops/replay/own_terms.hpp); nullptr: 0.
  double (*terms)(const void* args) = nullptr;
};

template <class Infer>
struct infer_types;
template <class Args, class Problem>
struct infer_types<void (*)(const Args&, Problem&, output_shapes&)> {
  using args = Args;
  using problem = Problem;
  static_assert(std::is_trivially_copyable_v<Problem> && sizeof(Problem) <= max_problem_bytes &&
                alignof(Problem) <= 8);
};

// Erases the types of the functions that an operator is written as:
//   void infer(const Args&, Problem&, output_shapes&)
//   void run(const Args&, const Problem&, const Kernels&, core::execution&)
//   const char* reject(const Args&, const Problem&, const kernel_entry&)
template <auto Infer, auto Run, auto Reject = nullptr>
class definition_of_types {
  using args = typename infer_types<decltype(Infer)>::args;
  using problem = typename infer_types<decltype(Infer)>::problem;

  template <class Kernels>
  static void run_typed(void (*run)(const args&, const problem&, const Kernels&, core::execution&),
                        const void* a, const void* p, const void* k, core::execution& on) {
    run(*static_cast<const args*>(a), *static_cast<const problem*>(p),
        *static_cast<const Kernels*>(k), on);
  }
  static void infer(const void* a, void* p, output_shapes& outputs) {
    Infer(*static_cast<const args*>(a), *new (p) problem, outputs);
  }
  static void run(const void* a, const void* p, const void* k, core::execution& on) {
    run_typed(Run, a, p, k, on);
  }
  static const char* reject(const void* a, const void* p, const kernel_entry& kernel) {
    if constexpr (std::is_same_v<decltype(Reject), std::nullptr_t>) {
      return nullptr;
    } else {
      return Reject(*static_cast<const args*>(a), *static_cast<const problem*>(p), kernel);
    }
  }

 public:
  static constexpr operator_def define(const kernel_list& kernels) {
    return {infer, run, reject, &kernels, sizeof(problem)};
  }
};

template <auto Infer, auto Run, auto Reject = nullptr>
constexpr operator_def define(const kernel_list& kernels) {
  return definition_of_types<Infer, Run, Reject>::define(kernels);
}

// An operator that waits adds:
//   void enter(const Args&, Problem&, core::stream&, const enqueue&)
//   void drop(const Problem&) noexcept
template <auto Enter, auto Drop>
struct waiting_of_types;
template <class Args, class Problem,
          void (*Enter)(const Args&, Problem&, core::stream&, const enqueue&),
          void (*Drop)(const Problem&) noexcept>
struct waiting_of_types<Enter, Drop> {
  static constexpr waiting_calls calls = {
      [](const void* a, void* p, core::stream& on, const enqueue& put) {
        Enter(*static_cast<const Args*>(a), *static_cast<Problem*>(p), on, put);
      },
      [](const void* p) noexcept { Drop(*static_cast<const Problem*>(p)); }};
};
template <auto Infer, auto Run, auto Reject, auto Enter, auto Drop>
constexpr operator_def define_waiting(const kernel_list& kernels) {
  operator_def definition = define<Infer, Run, Reject>(kernels);
  definition.waits = &waiting_of_types<Enter, Drop>::calls;
  return definition;
}

// body(T()) with T the element type of `dtype`, which is one of three.
template <class Body>
void with_element_type(velo_dtype dtype, Body&& body) {
  if (dtype == f32) {
    body(float());
  } else if (dtype == bf16) {
    body(simd::bf16());
  } else {
    body(simd::f16());
  }
}

// The run of an operator that is a function template over the element type of one of its tensors:
// define<infer, by_dtype<&velo_add_args::y, run<float>, run<simd::bf16>, run<simd::f16>>>.
template <auto Tensor, auto OnF32, auto OnBf16, auto OnF16, class Run = decltype(OnF32)>
struct run_by_dtype;
template <auto Tensor, auto OnF32, auto OnBf16, auto OnF16, class Args, class... Others>
struct run_by_dtype<Tensor, OnF32, OnBf16, OnF16, void (*)(const Args&, Others...)> {
  static void run(const Args& a, Others... others) {
    const velo_dtype dtype = (a.*Tensor)->dtype;
    (dtype == f32 ? OnF32 : dtype == bf16 ? OnBf16 : OnF16)(a, others...);
  }
};
template <auto Tensor, auto OnF32, auto OnBf16, auto OnF16>
inline constexpr auto by_dtype = run_by_dtype<Tensor, OnF32, OnBf16, OnF16>::run;

}  // namespace velo::ops
