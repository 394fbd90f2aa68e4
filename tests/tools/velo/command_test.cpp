// The velo command, run as a program: what it prints, and how it ends.
#include <catch2/catch.hpp>
#include <string>

#include "tests/tools/velo/run.hpp"

namespace {

json parsed_output(const outcome& o) {
  INFO(o.out);
  REQUIRE(o.code == 0);
  return parsed(o.out);
}

bool holds(const outcome& o, const std::string& text) {
  return o.out.find(text) != std::string::npos;
}

void expect_refused(const std::string& words, const char* reason) {
  INFO(words);
  const outcome o = run_velo(words);
  INFO(o.out);
  CHECK(o.code == 1);
  CHECK(o.out.rfind("velo: ", 0) == 0);
  CHECK(holds(o, reason));
  // No word that only a caller of the C interface knows.
  for (const char* internal : {"velo_", "VELO_", "args", "desc.", "NULL", "values["})
    CHECK_FALSE(holds(o, internal));
}

}  // namespace

TEST_CASE("help is given for the whole and for each command") {
  const outcome all = run_velo("--help");
  CHECK(all.code == 0);
  for (const char* name : {"info", "ops", "explain", "place", "replay", "swap-bench", "topology",
                           "collective", "schedule"}) {
    CHECK(holds(all, name));
    const outcome one = run_velo(std::string(name) + " --help");
    CHECK(one.code == 0);
    CHECK(one.out.find(std::string("usage: velo ") + name) != std::string::npos);
    CHECK(run_velo(std::string("help ") + name).out == one.out);
  }
  CHECK(run_velo("").code == 1);
  CHECK(run_velo("help").out == all.out);
  CHECK(run_velo("help help").out == all.out);
}

TEST_CASE("the version is that of the library and of its ABI") {
  const outcome o = run_velo("--version");
  CHECK(o.code == 0);
  const json all = parsed_output(run_velo("info --json --no-measure"));
  CHECK(o.out == "velo " + text_of(all, "version") + ", ABI " + text_of(all, "abi") + "\n");
}

TEST_CASE("info tells the library, the machine and the configuration") {
  const outcome o = run_velo("info --set isa=scalar --set threads=1 --no-measure");
  CHECK(o.code == 0);
  CHECK(holds(o, "ABI 1."));
  CHECK(holds(o, "rms_norm"));
  CHECK(!holds(o, "f32 peak"));
  const json all = parsed_output(run_velo("info --json --no-measure --set isa=scalar"));
  CHECK(text_of(all, "isa") == "scalar");
  CHECK(integer_of(all, "threads") >= 1);
  CHECK(json_array_size(json_object_get(all.get(), "operators")) >= 10);
  json_t* transports = json_object_get(all.get(), "transports");
  REQUIRE(json_array_size(transports) == 5);
  for (std::size_t i = 0; i < 4; ++i) {  // there, or not for a reason
    json_t* one = json_array_get(transports, i);
    const std::string name = json_string_value(json_object_get(one, "transport"));
    const bool there = json_is_true(json_object_get(one, "there"));
    if (name != "mpi") CHECK(there);
    CHECK(there == text_of(one, "missing").empty());
    CHECK(holds(o, name));
  }
  bool found = false;
  json_t* rows = json_object_get(all.get(), "configuration");
  for (std::size_t i = 0; i < json_array_size(rows); ++i) {
    json_t* row = json_array_get(rows, i);
    if (text_of(row, "key") != "isa") continue;
    found = true;
    CHECK(text_of(row, "origin") == "code");
  }
  CHECK(found);
}

TEST_CASE("info measures rates of work and of memory, for one thread and for all") {
  const json all = parsed_output(run_velo("info --json"));
  json_t* limits = json_object_get(all.get(), "limits");
  REQUIRE(json_array_size(limits) >= 1);
  for (std::size_t i = 0; i < json_array_size(limits); ++i)
    for (const char* name : {"f32_gflops", "bf16_gflops", "read_gbytes", "copy_gbytes"})
      CHECK(number_of(json_array_get(limits, i), name) > 0.01);
  CHECK(integer_of(json_array_get(limits, 0), "threads") == 1);
}

TEST_CASE("the limits info shows are the machine's, not those of velo's operators") {
  const auto f32 = [](const char* words) {
    const json all = parsed_output(run_velo(words));
    json_t* one = json_array_get(json_object_get(all.get(), "limits"), 0);
    return number_of(one, "f32_gflops");
  };
  // Level 0 multiplies by plain loops, many times slower.
  CHECK(f32("info --json --set level=0") > 0.5 * f32("info --json"));
}

TEST_CASE("ops lists all operators, and one in full under any of its names") {
  const outcome all = run_velo("ops");
  CHECK(all.code == 0);
  CHECK(holds(all, "matmul"));
  CHECK(holds(all, "reference"));
  const outcome one = run_velo("ops npu_rms_norm");
  CHECK(one.code == 0);
  CHECK(one.out.rfind("rms_norm", 0) == 0);
  CHECK(holds(one, "1e-06, >= 0"));
  CHECK(holds(one, "row_invariant"));
  const json list = parsed_output(run_velo("ops --json"));
  CHECK(json_array_size(list.get()) >= 10);
  const json described = parsed_output(run_velo("ops rms_norm --json"));
  CHECK(text_of(described, "name") == "rms_norm");
}

TEST_CASE("ops shows every enumeration's names with their values") {
  const json list = parsed_output(run_velo("ops --json"));
  int seen = 0;
  for (std::size_t i = 0; i < json_array_size(list.get()); i += 2) {
    const json_t* op = json_array_get(list.get(), i);
    const json_t* fields = json_object_get(op, "fields");
    for (std::size_t k = 0; k < json_array_size(fields); ++k) {
      const json_t* field = json_array_get(fields, k);
      const json_t* values = json_object_get(field, "values");
      const bool named = json_object_get(field, "enum") != nullptr;
      CHECK(json_is_array(values) == named);
      if (!named) continue;
      const outcome one =
          run_velo(std::string("ops ") + json_string_value(json_object_get(op, "name")));
      CHECK(json_array_size(values) > 0);
      for (std::size_t v = 0; v < json_array_size(values); ++v, ++seen) {
        const json_t* value = json_array_get(values, v);
        std::string words = json_string_value(json_object_get(value, "name"));
        // The enumerations come after the fields, which may have the same names.
        const std::size_t at = one.out.rfind("\n" + words + " ");
        INFO(one.out << words);
        REQUIRE(at != std::string::npos);
        CHECK(std::atoll(&one.out[one.out.find_first_of("0123456789", at + 1 + words.size())]) ==
              integer_of(value, "value"));
      }
    }
  }
  CHECK(seen > 10);
}

TEST_CASE("explain shows kernels with reasons, and the outputs") {
  const outcome o =
      run_velo("explain rms_norm 'x=f32[8,4096]' 'gamma=f32[4096]' epsilon=1e-5 --set isa=scalar");
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(holds(o, "needs an instruction set"));
  CHECK(holds(o, "runs"));
  CHECK(holds(o, "f32[8,4096]"));
  const json all =
      parsed_output(run_velo("explain rms_norm 'x=bf16[2,3,64]' 'gamma=f32[64]' --json"));
  json_t* outputs = json_object_get(all.get(), "outputs");
  REQUIRE(json_array_size(outputs) >= 1);
  CHECK(text_of(json_array_get(outputs, 0), "shape") == "bf16[2,3,64]");
  CHECK(json_array_size(json_object_get(all.get(), "kernels")) >= 2);
}

TEST_CASE("collective shows the ways of a collective with reasons, and its time") {
  const outcome o = run_velo("collective all_reduce --ranks 3 --size 1048576");
  CHECK(o.code == 0);
  CHECK(holds(o, "all_reduce of 262143 float32, sum over local"));
  CHECK(holds(o, "parts     taken  each rank combines a part"));
  CHECK(holds(o, "predicted"));
  const json all = parsed_output(run_velo("collective broadcast --size 400 --json"));
  CHECK(text_of(all, "operation") == "broadcast of 100 float32 from rank 0");
  CHECK(integer_of(all, "steps") == 0);
  CHECK(integer_of(all, "predicted_ns") > 0);
  CHECK(integer_of(all, "measured_ns") > 0);
  expect_refused("collective", "wants a kind");
  expect_refused("collective all_redcue", "did you mean all_reduce?");
  expect_refused("collective all_reduce --ranks 0", "--ranks wants a number from 1 to 64");
#ifndef __SANITIZE_THREAD__  // its operator new ends the process where others throw
  for (const char* kind : {"broadcast", "all_gather", "reduce_scatter"})
    expect_refused(std::string("collective ") + kind + " --ranks 4 --size 999999999999999",
                   "--size 999999999999999: no memory for the tensors of 4 ranks");
  expect_refused("collective broadcast --size 9223372036854775807", "no memory for the tensors");
#endif
  expect_refused("collective broadcast --size 7", "a float32 for each of 2 ranks takes 8");
  CHECK(holds(run_velo("collective broadcast --size 8"), "broadcast of 2 float32 from rank 0"));
}

TEST_CASE("explain takes enumerators, truth values and packs") {
  CHECK(run_velo("explain rotary_position_embedding 'x=f32[1,8,2,64]' 'cos=f32[1,8,1,64]' "
                 "'sin=f32[1,8,1,64]' mode=interleaved")
            .code == 0);
  const outcome o =
      run_velo("explain matmul 'a=f32[512,64]' 'packed=pack:f32[64,32]' transpose_a=false");
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(holds(o, "f32[512,32]"));
}

TEST_CASE("no kernel that serves is an outcome of its own") {
  const outcome o = run_velo(
      "explain rms_norm 'x=f32[8,64]' 'gamma=f32[64]' --set isa=scalar --set kernel.rms_norm=avx2");
  CHECK(o.code == 2);
  CHECK(holds(o, "no kernel of rms_norm serves"));
}

TEST_CASE("input that makes no sense is refused with the reason") {
  expect_refused("explain apply_fused_adamw 'grad=f32[4]'", "param");
  expect_refused("explain rms_norm --set kernel.rms_norm=avx3", "avx2");
  expect_refused("explain rms_norm", "wants x=.. gamma=.., a tensor as in f32[8,4096]");
  expect_refused("explain rms_norm 'x=f32[8,4096'", "x=f32[8,4096: expected a tensor");
  expect_refused("inform", "unknown command inform; did you mean info?");
  expect_refused("xyzzy", "unknown command xyzzy; velo help lists what there is");
  expect_refused("help opps", "unknown command opps; did you mean ops?");
  expect_refused("--vresion", "did you mean --version?");
  expect_refused("info --no-mesure", "unknown option --no-mesure; did you mean --no-measure?");
  expect_refused("info please", "please");
  expect_refused("info --loud", "--loud");
  expect_refused("info --set isa", "key=value");
  expect_refused("info --set isa=mmx", "--set isa=mmx: expected scalar, avx2, avx512");
  expect_refused("info --set threads=many", "--set threads=many: expected an integer");
  expect_refused("info --set colour=red", "--set colour=red: no such key; there are threads, isa");
  expect_refused("explain rms_norm --set levle=1", "no such key; did you mean level?");
  expect_refused("ops no_such_op", "no_such_op: no such operator; velo ops lists them");
  expect_refused("ops rms_nrm", "rms_nrm: no such operator; did you mean rms_norm?");
  expect_refused("explain npu_rms_nrm", "did you mean npu_rms_norm?");
  expect_refused("explain", "operator's name");
  expect_refused("explain no_such_op", "no_such_op: no such operator");
  expect_refused("explain rms_norm gama=f32[4]", "rms_norm has no such field; did you mean gamma?");
  expect_refused("explain rms_norm x=f32[4] x=f32[4]", "x: given twice");
  expect_refused("explain rms_norm x", "field=value");
  expect_refused("explain rms_norm 'z=f32[4]'", "rms_norm has no such field; it has x, gamma, y");
  expect_refused("explain rms_norm 'x=f33[4]'", "expected a tensor");
  expect_refused("explain rms_norm 'x=f32[4'", "expected a tensor");
  expect_refused("explain rms_norm 'x=f32[4,x]'", "expected a tensor");
  expect_refused("explain rms_norm 'x=f32[8,64]' 'gamma=f32[64]' epsilon=tiny",
                 "expected a number");
  expect_refused("explain rms_norm 'x=f32[8,64]' 'gamma=f32[63]'",
                 "gamma, its shape: expected [64], got [63]");
  expect_refused("explain rms_norm 'x=f32[8,64]' 'gamma=f16[64]'", "gamma, its dtype: expected");
  expect_refused("explain rms_norm 'x=f32[8,64]'", "gamma: expected a tensor, got nothing");
  expect_refused("explain rms_norm 'x=f32[8,-4]' 'gamma=f32[4]'",
                 "x, its shape[1]: expected a size of 0 or more, got -4");
  expect_refused("explain rms_norm 'x=f32[8,4]' 'gamma=f32[4]' epsilon=-1",
                 "epsilon: expected a finite number");
  expect_refused("explain cross_entropy 'logits=f32[6,11]' 'targets=i64[6]' reduction=max",
                 R"(reduction: expected one of none, mean, sum, got "max")");
  expect_refused("explain matmul 'a=f32[512,64]' packed=f32", "expected a pack");
  expect_refused(
      "explain weight_quant_matmul 'x=f32[1,64]' 'scale=f32[32]' 'packed=pack:f32[64,32]'",
      "packed=pack:f32[64,32]: dtype: expected int8 or int4 with weight_only, got float32");
  expect_refused(
      "explain matmul 'a=f32[512,64]' 'packed=pack:f64[64,32]'",
      "packed=pack:f64[64,32]: dtype: expected float32, bfloat16, float16 or int8, got float64");
  expect_refused("explain matmul 'a=f32[512,64]' 'packed=pack:f32[2,64,32]'",
                 "packed: expected a pack without a count, got one with a count of 2");
}
