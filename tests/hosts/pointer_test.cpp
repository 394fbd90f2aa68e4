// Every operator as a bare C function pointer, called by a host that builds its calls from a
// signature alone, against the plain C API.
#include <ffi.h>

#include <catch2/catch.hpp>

#include "samples.hpp"
#include "tests/context.hpp"

using namespace hosts;

namespace {

// The host: knows a pointer and a list of words, integers or reals.
class pointer_call {
 public:
  void pointer(const void* value) { add(&ffi_type_pointer).p = value; }
  void integer(std::int64_t value) { add(&ffi_type_sint64).i = value; }
  void real(double value) { add(&ffi_type_double).f = value; }

  velo_status operator()(void* function) {
    std::vector<void*> places;
    for (word& w : words_) places.push_back(&w);
    ffi_cif cif;
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, static_cast<unsigned>(types_.size()), &ffi_type_sint32,
                     types_.data()) != FFI_OK)
      throw std::runtime_error("no such signature");
    ffi_arg result = 0;
    ffi_call(&cif, FFI_FN(function), &result, places.data());
    return static_cast<velo_status>(result);
  }

 private:
  union word {
    const void* p;
    std::int64_t i;
    double f;
  };
  word& add(ffi_type* type) {
    types_.push_back(type);
    words_.push_back({});
    return words_.back();
  }
  std::vector<ffi_type*> types_;
  std::vector<word> words_;
};

}  // namespace

TEST_CASE("a pointer to every operator gives the plain call's bits") {
  const velo::testing::live_context host;
  for (const sample& s : samples(true)) {
    INFO(s.op << " " << s.attributes_json());
    auto outputs = s.blank_outputs();
    std::vector<velo_tensor> views;
    std::vector<velo_ints> lists;
    views.reserve(48);
    lists.reserve(8);
    std::string fields;
    pointer_call call;
    const auto name = [&](const std::string& field) {
      fields += (fields.empty() ? "" : ", ") + field;
    };
    for (named_array& out : outputs) {
      if (const array* before = s.input(out.field)) out.data = *before;
      name(out.field);
      views.push_back(out.data.view());
      call.pointer(&views.back());
    }
    for (const named_array& in : s.inputs) {
      bool written = false;
      for (const named_array& out : outputs) written = written || out.field == in.field;
      if (written) continue;
      name(in.field);
      views.push_back(in.data.view());
      call.pointer(&views.back());
    }
    for (const attribute& a : s.attributes) {
      name(a.name);
      if (a.kind == VELO_VALUE_INTS) {
        lists.push_back({a.list.data(), static_cast<std::int64_t>(a.list.size())});
        call.pointer(&lists.back());
      } else {
        a.kind == VELO_VALUE_FLOAT ? call.real(a.real) : call.integer(enumerator(s.op, a));
      }
    }
    velo_closure closure = nullptr;
    void* function = nullptr;
    REQUIRE(velo_closure_create(host.inline_stream(), s.op.c_str(), fields.c_str(), &function,
                                &closure) == VELO_OK);
    CHECK(call(function) == VELO_OK);
    CHECK(same_bits(outputs, s.outputs));
    velo_closure_destroy(closure);
  }
}
