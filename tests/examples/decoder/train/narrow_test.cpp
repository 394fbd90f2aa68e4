// Masters as residuals, moments and gradients in bf16: memory and losses, and the same bits where
// nothing is lost.
#include <catch2/catch.hpp>

#include "tests/examples/decoder/trained.hpp"

using namespace decoder;

namespace {

trained train_narrow(const narrow_settings& narrow, settings s = small_settings("bf16")) {
  s.optimizer.narrow = narrow;
  return train(s);
}

// Every loss within so much of another run's.
void check_near(const trained& one, const trained& other, double margin) {
  REQUIRE(one.losses.size() == other.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i)
    CHECK(one.losses[i] == Approx(other.losses[i]).epsilon(margin));
}

}  // namespace

TEST_CASE("masters as residuals give the losses, weights and state of f32 ones in 2 bytes less") {
  const trained usual = train_narrow({});
  const trained reused = train_narrow({true, false, false});
  CHECK(reused.losses == usual.losses);
  CHECK((reused.state == usual.state));
  CHECK(12 * reused.optimizer == 10 * usual.optimizer);
  CHECK(reused.peak == Approx(reused.predicted).epsilon(0.02));
}

TEST_CASE("moments in bf16 take 4 bytes less, with masters as residuals of the same bits 6") {
  const trained usual = train_narrow({}), narrow = train_narrow({false, true, false});
  CHECK(12 * narrow.optimizer == 8 * usual.optimizer);
  CHECK(narrow.losses != usual.losses);
  check_near(narrow, usual, 2e-3);
  const trained reused = train_narrow({true, true, false});
  CHECK(reused.losses == narrow.losses);
  CHECK((reused.state == narrow.state));
  CHECK(12 * reused.optimizer == 6 * usual.optimizer);
}

TEST_CASE("gradients in bf16 take half the memory, and keep their bits where memory is saved") {
  const trained usual = train_narrow({}), narrow = train_narrow({false, false, true});
  CHECK(2 * narrow.gradients == usual.gradients);
  CHECK(narrow.losses != usual.losses);
  check_near(narrow, usual, 2e-3);
  CHECK(narrow.peak == Approx(narrow.predicted).epsilon(0.02));
  settings saving = small_settings("bf16");
  saving.memory.recompute = "full";
  saving.memory.swap_activations = "host";
  saving.memory.plan = true;
  const trained other = train_narrow({true, false, true}, saving);
  CHECK(other.losses == narrow.losses);
  CHECK((other.state == narrow.state));
}
