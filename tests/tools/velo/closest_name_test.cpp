// Which name is offered for a mistyped one, and when none is.
#include "tools/velo/closest_name.hpp"

#include <catch2/catch.hpp>

using command::closest_name;
using command::did_you_mean;
using command::edits_between;

TEST_CASE("inserted, dropped, changed and swapped letters are one edit each") {
  CHECK(edits_between("steps", "steps") == 0);
  CHECK(edits_between("stepps", "steps") == 1);
  CHECK(edits_between("stes", "steps") == 1);
  CHECK(edits_between("steqs", "steps") == 1);
  CHECK(edits_between("setps", "steps") == 1);
  CHECK(edits_between("", "steps") == 5);
  CHECK(edits_between("kitten", "sitting") == 3);
}

TEST_CASE("the closest name is offered, or one the word is a part of, or none") {
  const std::vector<std::string> names = {"ops", "matmul", "matmul_add_fp32", "rms_norm",
                                          "rms_norm_backward"};
  CHECK(closest_name("rms_nrm", names) == "rms_norm");
  CHECK(closest_name("matmull", names) == "matmul");
  CHECK(closest_name("op", names) == "ops");
  CHECK(closest_name("norm", names) == "rms_norm");
  CHECK(closest_name("backward", names) == "rms_norm_backward");
  CHECK(closest_name("RMS_Norm", names) == "rms_norm");
  CHECK(closest_name("softmax", names).empty());
  CHECK(closest_name("x", names).empty());
  CHECK(closest_name("", names).empty());
  CHECK(closest_name(std::string(100000, 'a'), names).empty());
  CHECK(closest_name("ab", {"cd"}).empty());
  CHECK(did_you_mean("rms_nrm", names) == "; did you mean rms_norm?");
  CHECK(did_you_mean("matmull", names, "--") == "; did you mean --matmul?");
  CHECK(did_you_mean("softmax", names).empty());
}
