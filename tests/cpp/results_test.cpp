// Runs the result mode's checks from a program that also uses the throwing mode: the two keep
// apart.
#include "results_mode.hpp"

#include <catch2/catch.hpp>

#include "velo/velo.hpp"

TEST_CASE("without exceptions a failure is a value with the whole record") {
  CHECK(failure_is_a_value() == 0);
}

TEST_CASE("without exceptions a success holds the value, and moves it out") {
  CHECK(success_holds_the_value() == 0);
}

TEST_CASE("without exceptions operators return results and leave outputs untouched on error") {
  CHECK(operators_return_results() == 0);
}

TEST_CASE("the throwing mode of the same program still throws") {
  CHECK_THROWS_AS(velo::op_name(-1), velo::error);
}
