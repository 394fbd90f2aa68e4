// The same mistake in a tensor has the same code and the same words from every module: an import,
// an operator, a pack of weights, a collective, a message, a bucket of gradients and the outputs of
// a stage. Only the name of the argument differs.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sched/executor/message.hpp"
#include "tests/context.hpp"
#include "tests/core/fails.hpp"
#include "tests/record.hpp"
#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace {

using namespace velo::testing;

const std::int64_t shape[] = {4, 4}, negative[] = {4, -1}, hostile[] = {1ll << 40, 1ll << 40};
const std::int64_t spread[] = {8, 2};

// A call of each module on one tensor of 4 x 4 float32 that it accepts.
class entries {
 public:
  entries() {
    REQUIRE(velo_group_create(context_, nullptr, &group_) == VELO_OK);
    velo_pack_desc weight = VELO_PACK_DESC_INIT;
    weight.k = weight.n = 4;
    REQUIRE(velo_pack_create(context_, &weight, &pack_) == VELO_OK);
  }

  velo_tensor valid(float* elements) const { return view_of(elements, f32, shape); }

  velo_status import(const velo_tensor* t) const {
    velo_managed_tensor managed{};
    managed.version = {1, 0};
    if (t != nullptr) managed.tensor = *t;
    velo_tensor seen{};
    return velo_tensor_import(context_, t == nullptr ? nullptr : &managed, &seen);
  }
  velo_status normalize(const velo_tensor* t) const {
    const velo_tensor gamma = view_of(others_, f32, shape, 1),
                      y = view_of(others_ + 16, f32, shape);
    velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
    args.x = t;
    args.gamma = &gamma;
    args.y = &y;
    return velo_rms_norm(stream_, &args);
  }
  velo_status pack(const velo_tensor* t) const { return velo_pack_update(stream_, pack_, t); }
  velo_status all_reduce(const velo_tensor* t) const {
    const velo_tensor out = view_of(others_, f32, shape);
    const velo_reduction sum = VELO_REDUCTION_INIT;
    return velo_group_all_reduce(stream_, group_, &sum, t, &out);
  }
  velo_status broadcast(const velo_tensor* t) const {
    return velo_group_broadcast(stream_, group_, 0, t);
  }
  velo_status exchange(const velo_tensor* t) const {
    const velo_tensor to = view_of(others_, f32, shape);
    velo_group_message messages[2] = {};
    messages[0].x = t;
    messages[0].direction = VELO_MESSAGE_SEND;
    messages[1].x = &to;
    messages[1].direction = VELO_MESSAGE_RECEIVE;
    return velo_group_exchange(stream_, group_, messages, 2);
  }
  velo_status bucket(const velo_tensor* t) const {
    const std::int64_t count = 16;
    velo_buckets made = nullptr;
    const velo_status status = velo_buckets_create(stream_, group_, t, &count, 1, nullptr, &made);
    velo_buckets_destroy(made);
    return status;
  }

 private:
  const live_context context_;
  velo_stream stream_ = context_.inline_stream();
  velo_group group_ = nullptr;
  velo_pack pack_ = nullptr;
  alignas(64) mutable float others_[32] = {};
};

struct entry {
  const char* argument;
  std::function<velo_status(const velo_tensor*)> call;
  std::string dtypes;      // what is expected of a dtype; "": any is accepted
  bool elements = true;    // strides and data are looked at
  bool strided = false;    // rows may be apart
  bool free_shape = true;  // any rank and sizes
};

std::vector<entry> entries_of(const entries& of) {
  const auto method = [&of](velo_status (entries::*call)(const velo_tensor*) const) {
    return [&of, call](const velo_tensor* t) { return (of.*call)(t); };
  };
  const char* whole = "int, uint, float, bfloat or bool of 1, 2, 4 or 8 bytes";
  return {{"managed.tensor", method(&entries::import), "", false, true, false},
          {"args.x", method(&entries::normalize), "float32, bfloat16 or float16"},
          {"weight", method(&entries::pack), "float32", true, true, false},
          {"in", method(&entries::all_reduce), whole},
          {"x", method(&entries::broadcast), whole},
          {"messages[0].x", method(&entries::exchange), whole},
          {"gradients", method(&entries::bucket), whole}};
}

struct mistake {
  const char* name;
  void (*make)(velo_tensor& t);
  velo_status code;
  const char* member;
  const char* expected;  // nullptr: the dtypes of the entry
  const char* got;
  enum { anywhere, of_elements, of_strides, of_counts } needs = anywhere;
};

const mistake mistakes[] = {
    {"a rank that no tensor has", [](velo_tensor& t) { t.ndim = 9; }, VELO_ERR_RANK, ".ndim",
     "0 to 8 dimensions", "9"},
    {"a rank below 0", [](velo_tensor& t) { t.ndim = -1; }, VELO_ERR_RANK, ".ndim",
     "0 to 8 dimensions", "-1"},
    {"no sizes", [](velo_tensor& t) { t.shape = nullptr; }, VELO_ERR_NULL, ".shape", "2 sizes",
     "NULL"},
    {"no size",
     [](velo_tensor& t) {
       t.shape = nullptr;
       t.ndim = 1;
     },
     VELO_ERR_NULL, ".shape", "1 size", "NULL", mistake::of_counts},
    {"a size below 0", [](velo_tensor& t) { t.shape = negative; }, VELO_ERR_SHAPE, ".shape[1]",
     "a size of 0 or more", "-1"},
    {"another device",
     [](velo_tensor& t) {
       t.device = velo_device{2, 1};
     },
     VELO_ERR_DEVICE, ".device", "device cpu:0 of the context", "device cuda:1"},
    {"a device of the same type", [](velo_tensor& t) { t.device.id = 1; }, VELO_ERR_DEVICE,
     ".device", "device cpu:0 of the context", "device cpu:1"},
    {"half bytes", [](velo_tensor& t) { t.dtype = i4; }, VELO_ERR_DTYPE, ".dtype", nullptr, "int4"},
    {"vectors", [](velo_tensor& t) { t.dtype.lanes = 2; }, VELO_ERR_DTYPE, ".dtype", nullptr,
     "float32x2"},
    {"a type of DLPack's that velo lacks",
     [](velo_tensor& t) {
       t.dtype = velo_dtype{5, 64, 1};
     },
     VELO_ERR_DTYPE, ".dtype", nullptr, "complex64"},
    {"a type without a name", [](velo_tensor& t) { t.dtype.code = 99; }, VELO_ERR_DTYPE, ".dtype",
     nullptr, "type code 99 of 32 bits, lanes 1"},
    {"no data", [](velo_tensor& t) { t.data = nullptr; }, VELO_ERR_NULL, ".data",
     "a pointer to the elements", "NULL", mistake::of_elements},
    {"elements between others'", [](velo_tensor& t) { t.byte_offset = 2; }, VELO_ERR_LAYOUT,
     ".data", "float32 aligned to its 4 bytes", nullptr, mistake::of_elements},
    {"gaps", [](velo_tensor& t) { t.strides = spread; }, VELO_ERR_LAYOUT, ".strides",
     "compact row-major strides (or NULL)", "[8, 2]", mistake::of_strides},
    {"sizes whose product overflows", [](velo_tensor& t) { t.shape = hostile; }, VELO_ERR_SHAPE,
     ".shape", "sizes of 0 or more, and fewer than 2^57 elements", "[1099511627776, 1099511627776]",
     mistake::of_counts},
};

bool applies(const mistake& what, const entry& to) {
  if (what.code == VELO_ERR_DTYPE) return !to.dtypes.empty();
  if (what.code == VELO_ERR_RANK) return to.free_shape;
  return what.needs == mistake::anywhere || (what.needs == mistake::of_elements && to.elements) ||
         (what.needs == mistake::of_strides && !to.strided) ||
         (what.needs == mistake::of_counts && to.free_shape);
}

void check_words(const mistake& what, const std::string& argument, const std::string& dtypes,
                 const call_record& r) {
  CHECK(r.argument == argument + what.member);
  CHECK(r.expected == (what.expected == nullptr ? dtypes : what.expected));
  if (what.got != nullptr)
    CHECK(r.got == what.got);
  else
    CHECK(r.got.rfind("address 0x", 0) == 0);
}

}  // namespace

TEST_CASE("the same mistake in a tensor has the same code and words from every module") {
  const entries of;
  alignas(64) float elements[20] = {};
  for (const entry& one : entries_of(of)) {
    INFO(one.argument);
    const velo_tensor valid = of.valid(elements);
    CHECK(one.call(&valid) == VELO_OK);
    for (const mistake& what : mistakes) {
      if (!applies(what, one)) continue;
      INFO(what.name);
      velo_tensor wrong = valid;
      what.make(wrong);
      CHECK(one.call(&wrong) == what.code);
      CHECK(last_record().code == what.code);
      check_words(what, one.argument, one.dtypes, last_record());
    }
  }
}

TEST_CASE("a size of 1 may have any stride in a collective") {
  const entries of;
  alignas(64) float elements[20] = {};
  const std::int64_t row[] = {1, 16}, strides[][2] = {{-16, 1}, {INT64_MAX, 1}, {INT64_MIN, 1}};
  for (const entry& one : entries_of(of)) {
    if (one.strided || !one.free_shape || one.dtypes == "float32, bfloat16 or float16") continue;
    INFO(one.argument);
    for (const auto& any : strides) {
      velo_tensor odd = of.valid(elements);
      odd.shape = row;
      odd.strides = any;
      CHECK(one.call(&odd) == VELO_OK);
    }
  }
}

TEST_CASE("outputs of a stage are refused in the words of other tensors") {
  const entries of;
  alignas(64) float elements[20] = {};
  for (const mistake& what : mistakes) {
    // Any dtype crosses between stages, however aligned; sizes have a limit of their own.
    if (what.code == VELO_ERR_DTYPE || what.got == nullptr || what.needs == mistake::of_counts ||
        std::strcmp(what.got, "device cpu:1") == 0)
      continue;
    INFO(what.name);
    velo_tensor wrong = of.valid(elements);
    what.make(wrong);
    const auto f = failure_of([&] { velo::sched::form_of(&wrong, 1); });
    CHECK(f.code == what.code);
    const std::string expected =
        what.code == VELO_ERR_DEVICE ? "device cpu:1 of the context" : what.expected;
    CHECK(f.argument == std::string("outputs[0]") + what.member);
    CHECK(f.expected == expected);
    CHECK(f.got == std::string(what.got));
  }
}

TEST_CASE("a tensor that is not there is refused in the same words") {
  const entries of;
  for (const entry& one : entries_of(of)) {
    if (std::strcmp(one.argument, "managed.tensor") == 0) continue;  // another struct
    INFO(one.argument);
    CHECK(one.call(nullptr) == VELO_ERR_NULL);
    CHECK(last_record().argument == one.argument);
    CHECK(last_record().expected == "a tensor");
    CHECK(last_record().got == "NULL");
  }
}

TEST_CASE("tensors that share memory are refused in the same words") {
  const live_context context;
  const velo_stream stream = context.inline_stream();
  velo_group group = nullptr;
  REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK);
  alignas(64) float elements[24] = {};
  const entries of;
  const velo_tensor first = of.valid(elements), second = of.valid(elements + 4);
  const velo_tensor gamma = view_of(elements + 20, f32, shape, 1);
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &first;
  args.gamma = &gamma;
  args.y = &second;
  const auto check = [](velo_status code, const char* argument, const char* expected,
                        const char* got) {
    CHECK_REFUSED(code, VELO_ERR_OVERLAP, argument);
    CHECK(last_record().expected == expected);
    CHECK(last_record().got == got);
  };
  check(velo_rms_norm(stream, &args), "args.y", "memory of its own, or exactly that of args.x",
        "memory shared with args.x");
  const velo_reduction sum = VELO_REDUCTION_INIT;
  check(velo_group_all_reduce(stream, group, &sum, &first, &second), "out",
        "memory of its own, or exactly that of in", "memory shared with in");
  velo_group_message messages[2] = {};
  messages[0].x = &first;
  messages[0].direction = VELO_MESSAGE_SEND;
  messages[1].x = &second;
  messages[1].direction = VELO_MESSAGE_RECEIVE;
  check(velo_group_exchange(stream, group, messages, 2), "messages[1].x", "memory of its own",
        "memory shared with messages[0].x");
}

TEST_CASE("a tensor that is to be made is described in the words of a tensor") {
  const live_context context;
  velo_managed_tensor* made = nullptr;
  const auto refused = [&](velo_dtype dtype, int rank, const std::int64_t* sizes) {
    REQUIRE(velo_tensor_create(context, &dtype, rank, sizes, &made) != VELO_OK);
    const call_record r = last_record();
    return r.argument + ": " + r.expected + ", not " + r.got;
  };
  CHECK(refused(f32, 9, shape) == "ndim: 0 to 8 dimensions, not 9");
  CHECK(refused(f32, 2, nullptr) == "shape: 2 sizes, not NULL");
  CHECK(refused(f32, 2, negative) == "shape[1]: a size of 0 or more, not -1");
  CHECK(refused({VELO_DTYPE_FLOAT, 32, 2}, 2, shape) ==
        "dtype: an integer, float, bfloat16 or bool of whole bytes, or int4, one lane, not "
        "float32x2");
  CHECK(refused(f32, 2, hostile) ==
        "shape: sizes whose bytes fit in 63 bits, not [1099511627776, 1099511627776]");
}
