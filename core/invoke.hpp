// Calls C functions, and makes them, from a description of their parameters. invoke.cpp is the only
// file of the library that includes ffi.h.
//
// A signature is a result and up to 32 parameters of a closed list of types. Each distinct
// signature is prepared once, under a lock, and kept for the life of the process; a call through it
// takes no lock. Values are passed in 8-byte words. A call of foreign code turns any exception into
// VELO_ERR_FOREIGN. Cost: 30-90 ns a call, about 60 ns to prepare.
#pragma once

#include <cstdint>

#include "core/signature.hpp"
#include "velo/introspect.h"

namespace velo::core {

// How a value is passed to a C function.
enum class passing : std::uint8_t { nothing, pointer, i32, u32, i64, u64, f32, f64 };

struct signature {
  static constexpr int max_parameters = 32;
  passing result = passing::nothing;
  bool returns_status = false;  // the result, an i32, is a velo_status
  int count = 0;
  passing parameters[max_parameters] = {};
};
bool operator==(const signature& a, const signature& b);

// Reads "v(ppl)": v void, p pointer, i int32, l int64, f float, d double, s velo_status (result
// only). Throws VELO_ERR_PARSE with the column.
signature parse_signature(const char* text, const char* argument);

union word {
  std::int32_t i32;
  std::uint32_t u32;
  std::int64_t i64;
  std::uint64_t u64;
  float f32;
  double f64;
  void* pointer;
};
static_assert(sizeof(word) == 8);

using any_function = void (*)();

// A signature ready to be called; never freed.
class prepared;
const prepared& prepare(const signature& shape);  // throws MEMORY, UNSUPPORTED

// Calls the function and catches nothing. arguments: one word for each parameter.
word call(const prepared& shape, any_function function, const word* arguments);

// As call(), for foreign code: an exception becomes VELO_ERR_FOREIGN with its what() as the cause.
// who: the record's `got`, "saxpy of /usr/lib/libblas.so".
word call_foreign(const prepared& shape, any_function function, const word* arguments,
                  const char* who);

// Calls one of velo's own functions with tagged values, strictly converted; a failure names the
// parameter whose value does not fit. result: the function's result, may be null. Returns the
// function's status, VELO_OK if it has none.
velo_status invoke(const function_info& function, any_function address, const velo_value* values,
                   std::int64_t count, velo_value* result);

// A C function made at run time that calls body(user, words) and returns its result; body may
// destroy it. If the process may not generate code, or `allow_code` is false, one of 64 precompiled
// functions is used; they take up to 8 pointers and integers. Throws VELO_ERR_UNSUPPORTED with the
// reason if neither works.
class made_function {
 public:
  using body_fn = word (*)(void* user, const word* arguments) noexcept;

  // `body` must write all 64 bits of a result; it returns a status as `i64`.
  made_function(const signature& shape, body_fn body, void* user, bool allow_code);
  ~made_function();
  made_function(const made_function&) = delete;
  made_function& operator=(const made_function&) = delete;

  void* address() const noexcept { return address_; }
  bool precompiled() const noexcept { return place_ >= 0; }

 private:
  struct code;  // what libffi writes and the code reads
  bool write_code(const signature& shape, body_fn body, void* user);
  void take_precompiled(const signature& shape, body_fn body, void* user, const char* reason);

  code* code_ = nullptr;
  int place_ = -1;
  void* address_ = nullptr;
};

// Whether libffi can make a function here; tried on first use, then cached. Throws bad_alloc.
bool can_make_functions();

}  // namespace velo::core
