// The only use of libffi: interned call interfaces, calls, and functions made at run time.
//
// Preparing an interface may write to ffi's type objects, so it happens under a lock; a prepared
// interface is read-only and shared by all threads. It points into the array of types beside it, so
// both are in one node of a list that only grows. libffi widens a result narrower than a register
// to ffi_arg; call() takes its low bytes, which is right on the little-endian machines that velo
// supports. libffi guards its closures with its own locks, which may be held during a fork.
// Closures are therefore made and freed under a process_lock, and a child that finds it held makes
// none.
#include "core/invoke.hpp"

#include <ffi.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/handle/process.hpp"
#include "core/host/memory.hpp"
#include "core/precompiled.hpp"

namespace velo::core {

class prepared {
 public:
  signature shape;
  ffi_type* types[signature::max_parameters];
  mutable ffi_cif interface;
  prepared* next = nullptr;
};

namespace {

ffi_type* type_of(passing how) {
  switch (how) {
    case passing::nothing:
      return &ffi_type_void;
    case passing::pointer:
      return &ffi_type_pointer;
    case passing::i32:
      return &ffi_type_sint32;
    case passing::u32:
      return &ffi_type_uint32;
    case passing::i64:
      return &ffi_type_sint64;
    case passing::u64:
      return &ffi_type_uint64;
    case passing::f32:
      return &ffi_type_float;
    case passing::f64:
      return &ffi_type_double;
  }
  return nullptr;
}

process_lock preparing;
std::atomic<prepared*> interned{nullptr};  // complete at any moment, since a fork may come between

prepared* find_interned(const signature& shape) {
  prepared* at = interned.load(std::memory_order_acquire);
  while (at != nullptr && !(at->shape == shape)) at = at->next;
  return at;
}

void call_words(const prepared& shape, any_function function, const word* arguments, void* result) {
  void* places[signature::max_parameters];
  for (int i = 0; i < shape.shape.count; ++i) places[i] = const_cast<word*>(arguments + i);
  ffi_call(&shape.interface, function, result, places);
}

}  // namespace

bool operator==(const signature& a, const signature& b) {
  return a.result == b.result && a.count == b.count &&
         std::memcmp(a.parameters, b.parameters, static_cast<std::size_t>(a.count)) == 0;
}

const prepared& prepare(const signature& shape) {
  if (const prepared* known = find_interned(shape)) return *known;
  const process_guard lock(preparing);
  if (const prepared* known = find_interned(shape)) return *known;
  auto made = std::make_unique<prepared>();
  made->shape = shape;
  for (int i = 0; i < shape.count; ++i) made->types[i] = type_of(shape.parameters[i]);
  if (ffi_prep_cif(&made->interface, FFI_DEFAULT_ABI, static_cast<unsigned>(shape.count),
                   type_of(shape.result), made->types) != FFI_OK)
    fail(VELO_ERR_UNSUPPORTED, "signature", "a signature this platform can call", "one it cannot");
  made->next = interned.load(std::memory_order_relaxed);
  interned.store(made.get(), std::memory_order_release);
  return *made.release();
}

word call(const prepared& shape, any_function function, const word* arguments) {
  union {
    ffi_arg widened;
    word narrow;
  } result{};
  call_words(shape, function, arguments, &result);
  return result.narrow;
}

word call_foreign(const prepared& shape, any_function function, const word* arguments,
                  const char* who) {
  try {
    return call(shape, function, arguments);
  } catch (...) {
    fail_foreign("", who);
  }
}

// ---- functions made at run time

namespace {

process_lock closures;                       // of libffi
std::atomic<bool> closures_unusable{false};  // in this process and all its children

// Returns nullptr if libffi can make none. Throws bad_alloc if memory ran out, which libffi does
// not tell.
void* allocate_closure(void** executable) {
  const process_guard lock(closures);
  if (lock.taken_over()) closures_unusable.store(true, std::memory_order_relaxed);
  if (closures_unusable.load(std::memory_order_relaxed)) return nullptr;
  return again_with_memory([&] { return ffi_closure_alloc(sizeof(ffi_closure), executable); });
}

void free_closure(void* writable) {
  const process_guard lock(closures);
  if (lock.taken_over()) closures_unusable.store(true, std::memory_order_relaxed);
  if (!closures_unusable.load(std::memory_order_relaxed)) ffi_closure_free(writable);
}

}  // namespace

struct made_function::code {
  ffi_closure* writable;
  const prepared* shape;
  body_fn body;
  void* user;
};

bool made_function::write_code(const signature& shape, body_fn body, void* user) {
  auto made = std::make_unique<code>(code{nullptr, &prepare(shape), body, user});
  void* executable = nullptr;
  made->writable = static_cast<ffi_closure*>(allocate_closure(&executable));
  if (made->writable == nullptr) return false;
  const auto enter = [](ffi_cif* interface, void* result, void** places, void* self) {
    const auto& made_code = *static_cast<const code*>(self);
    word arguments[signature::max_parameters] = {};
    for (unsigned i = 0; i < interface->nargs; ++i)
      std::memcpy(arguments + i, places[i], interface->arg_types[i]->size);
    const word given = made_code.body(made_code.user, arguments);
    if (interface->rtype != &ffi_type_void) *static_cast<ffi_sarg*>(result) = given.i64;
  };
  if (ffi_prep_closure_loc(made->writable, &made->shape->interface, enter, made.get(),
                           executable) != FFI_OK) {
    free_closure(made->writable);
    return false;
  }
  address_ = executable;
  code_ = made.release();
  return true;
}

void made_function::take_precompiled(const signature& shape, body_fn body, void* user,
                                     const char* reason) {
  for (int i = 0; i < shape.count; ++i) {
    if (shape.parameters[i] == passing::f32 || shape.parameters[i] == passing::f64)
      fail(VELO_ERR_UNSUPPORTED, "fields",
           "pointers and integers, all a precompiled function can take",
           text("a real number as parameter %d", i), reason);
  }
  if (shape.count > precompiled::max_words)
    fail(VELO_ERR_UNSUPPORTED, "fields",
         text("at most %d parameters for a precompiled function", precompiled::max_words),
         text("%d", shape.count), reason);
  place_ = precompiled::take(body, user);
  if (place_ < 0)
    fail(VELO_ERR_UNSUPPORTED, "closure",
         text("one of %d precompiled functions", precompiled::count), "all of them taken", reason);
  address_ = precompiled::entry_of(place_, shape.count > 6);
}

made_function::made_function(const signature& shape, body_fn body, void* user, bool allow_code) {
  if (allow_code && can_make_functions() && write_code(shape, body, user)) return;
  take_precompiled(shape, body, user,
                   allow_code ? "the process may not make code at run time"
                              : "closures are off in the configuration");
}

made_function::~made_function() {
  if (place_ >= 0) precompiled::give_back(place_);
  if (code_ == nullptr) return;
  free_closure(code_->writable);
  delete code_;
}

bool can_make_functions() {
  enum answer { unknown, no, yes };
  static std::atomic<int> remembered{unknown};
  int known = remembered.load(std::memory_order_relaxed);
  if (known == unknown) {
    void* executable = nullptr;
    void* writable = allocate_closure(&executable);
    known = writable != nullptr ? yes : no;
    if (writable != nullptr) free_closure(writable);
    remembered.store(known, std::memory_order_relaxed);
  }
  return known == yes && !closures_unusable.load(std::memory_order_relaxed);
}

}  // namespace velo::core
