// An int, a std::exception and a bad_alloc thrown inside every exported function: a status and a
// record each time.
//
// The functions come from the generated table, so a new one is tested as soon as it exists. All
// arguments are zero or point to zeros: the throw comes before they are looked at.
#undef guard
#include <catch2/catch.hpp>
#include <cstddef>
#include <new>
#include <set>
#include <stdexcept>
#include <string>

#include "capi/src/api_table.hpp"
#include "core/handle/record.hpp"

namespace {

using velo::core::direction;
using velo::core::function_info;
using velo::core::parameter_info;
using velo::core::thread_class;
using velo::core::value_type;
#include "abi/generated/functions.inc"

enum class fault { none, number, exception, memory };
fault planted = fault::none;
int thrown = 0;

// These report what is or cannot fail, and must leave the record alone.
const std::set<std::string> unguarded = {"velo_last_error", "velo_error_text", "velo_version"};

// Every function takes at most 12 integers or pointers, in registers or in order on the stack, and
// a double that is in a register of its own, wherever it stands among them.
velo_status call(const function_info& function, const void* pointer) {
  using twelve = velo_status (*)(const void*, const void*, const void*, const void*, const void*,
                                 const void*, const void*, const void*, const void*, const void*,
                                 const void*, const void*, double);
  REQUIRE(function.parameter_count <= 12);
  const void* a[12] = {};
  int integers = 0, doubles = 0;
  for (int i = 0; i < function.parameter_count; ++i) {
    const value_type kind = function.parameters[i].kind;
    const bool points = kind == value_type::handle || kind == value_type::pointer ||
                        kind == value_type::string || kind == value_type::tensor ||
                        kind == value_type::ints;
    if (kind == value_type::f64) {
      REQUIRE(++doubles == 1);
    } else {
      a[integers++] = points ? pointer : nullptr;
    }
  }
  const auto entry = reinterpret_cast<twelve>(velo::capi::address_of(function));
  return entry(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], 0);
}

}  // namespace

void velo::core::throw_planted() {
  if (planted == fault::none) return;
  ++thrown;
  if (planted == fault::number) throw 7;
  if (planted == fault::exception) throw std::runtime_error("planted");
  throw std::bad_alloc();
}

TEST_CASE("whatever is thrown inside an exported function becomes its status and its record") {
  struct expectation {
    fault what;
    velo_status status;
    const char* cause;
  };
  const expectation all[] = {{fault::number, VELO_ERR_INTERNAL, "an exception of unknown type"},
                             {fault::exception, VELO_ERR_INTERNAL, "planted"},
                             {fault::memory, VELO_ERR_MEMORY, "out of memory"}};
  alignas(64) static const unsigned char zeros[8192] = {};
  int functions_tested = 0;
  for (const function_info& function : functions) {
    if (unguarded.count(function.name) != 0) continue;
    ++functions_tested;
    for (const expectation& expected : all) {
      INFO(function.name << " with fault " << static_cast<int>(expected.what));
      thrown = 0;
      planted = expected.what;
      const velo_status status = call(function, zeros + 64);
      planted = fault::none;
      REQUIRE(thrown == 1);
      const velo_error_info& record = velo::core::last_record();
      if (function.result != value_type::nothing) REQUIRE(status == expected.status);
      REQUIRE(record.code == expected.status);
      REQUIRE(std::string(record.function) == function.name);
      REQUIRE(std::string(record.cause) == expected.cause);
    }
  }
  CHECK(functions_tested > 40);
}

TEST_CASE("the functions without a guard leave the record alone") {
  for (const function_info& function : functions) {
    if (unguarded.count(function.name) == 0) continue;
    const velo_error_info before = velo::core::last_record();
    call(function, nullptr);
    CHECK(std::string(velo::core::last_record().function) == before.function);
    CHECK(velo::core::last_record().code == before.code);
  }
}
