// cross_entropy against its formula in double: every kernel, reduction, ignored tokens, gradients
// in place, extremes.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// The arguments of both directions; the rest of them as they are by default.
template <class T, class Target>
velo_cross_entropy_args forward_of(array<T>& logits, array<Target>& targets, array<float>& loss,
                                   array<float>& lse) {
  velo_cross_entropy_args f = VELO_CROSS_ENTROPY_ARGS_INIT;
  f.logits = logits.tensor(), f.targets = targets.tensor();
  f.loss = loss.tensor(), f.lse = lse.tensor();
  return f;
}
template <class T, class Target>
velo_cross_entropy_backward_args backward_of(array<float>& dloss, array<T>& logits,
                                             array<Target>& targets, array<float>& lse,
                                             array<T>& dlogits) {
  velo_cross_entropy_backward_args b = VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
  b.dloss = dloss.tensor(), b.logits = logits.tensor(), b.targets = targets.tensor();
  b.lse = lse.tensor(), b.dlogits = dlogits.tensor();
  return b;
}

template <class T>
void check(session& s, std::int64_t tokens, std::int64_t n, std::int64_t reduction,
           double scale = 5) {
  INFO("tokens " << tokens << ", n " << n << ", reduction " << reduction << ", bytes "
                 << sizeof(T));
  const bool none = reduction == VELO_REDUCTION_NONE;
  const std::vector<std::int64_t> loss_shape =
      none ? std::vector<std::int64_t>{tokens} : std::vector<std::int64_t>{};
  array<T> logits({tokens, n}), dlogits({tokens, n});
  array<std::int64_t> targets({tokens});
  array<float> loss(loss_shape), dloss(loss_shape), lse({tokens});
  logits.fill(1, scale), dloss.fill(2);
  const auto width = static_cast<std::size_t>(n);
  std::vector<double> losses(targets.size()), want_lse(targets.size()), want_d(logits.size());
  double count = 0, total = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    targets[t] = t % 5 == 3 ? -7 : static_cast<std::int64_t>(t * 31 % width);
    double largest = -1e300, sum = 0;
    for (std::size_t i = 0; i < width; ++i) largest = std::max(largest, logits.at(t * width + i));
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(logits.at(t * width + i) - largest);
    want_lse[t] = largest + std::log(sum);
    if (targets[t] == -7) continue;
    losses[t] = want_lse[t] - logits.at(t * width + static_cast<std::size_t>(targets[t]));
    count += 1, total += losses[t];
  }
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const double d =
        none ? dloss.at(t)
             : dloss.at(0) / (reduction == VELO_REDUCTION_MEAN ? std::max(count, 1.0) : 1);
    for (std::size_t i = 0; i < width && targets[t] != -7; ++i) {
      const double p = std::exp(logits.at(t * width + i) - want_lse[t]);
      want_d[t * width + i] = (p - (static_cast<std::int64_t>(i) == targets[t] ? 1 : 0)) * d;
    }
  }
  velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
  f.ignore_index = -7, f.reduction = reduction;
  VELO_RUN(velo_cross_entropy(s.stream(), &f));
  require_close(lse, want_lse, 1e-6, 1e-6);
  const double reduced = reduction == VELO_REDUCTION_SUM ? total : count > 0 ? total / count : 0;
  require_close(loss, none ? losses : std::vector<double>{reduced}, 2e-6,
                2e-6 * std::max(1.0, scale));
  velo_cross_entropy_backward_args b = backward_of(dloss, logits, targets, lse, dlogits);
  b.ignore_index = -7, b.reduction = reduction;
  VELO_RUN(velo_cross_entropy_backward(s.stream(), &b));
  require_close(dlogits, want_d, rounding<T>() + 2e-6 * std::max(1.0, scale), 1e-6);
  b.dlogits = b.logits;
  VELO_RUN(velo_cross_entropy_backward(s.stream(), &b));
  require_close(logits, want_d, rounding<T>() + 2e-6 * std::max(1.0, scale), 1e-6);
}

}  // namespace

TEST_CASE(
    "cross_entropy and its gradient agree with the formula for every kernel, reduction and dtype") {
  for (const char* op : {"cross_entropy", "cross_entropy_backward"}) {
    for_each_kernel(op, [](session& s) {
      for (const std::int64_t reduction :
           {VELO_REDUCTION_NONE, VELO_REDUCTION_MEAN, VELO_REDUCTION_SUM}) {
        for (const std::int64_t n : {1, 2, 15, 16, 33, 260, 5000}) {
          check<float>(s, 7, n, reduction);
          check<bf16>(s, 7, n, reduction);
          check<f16>(s, 7, n, reduction);
        }
        check<float>(s, 0, 8, reduction);
        check<float>(s, 3, 100, reduction, 1000);  // exponentials that only the shift keeps finite
      }
    });
  }
}

namespace {

// Weights of classes and smoothing, by the formula in double; targets of -7 are ignored.
template <class T>
void check_smoothed(session& s, std::int64_t n, bool weighted, double smoothing,
                    std::int64_t reduction) {
  INFO("n " << n << ", weighted " << weighted << ", smoothing " << smoothing << ", reduction "
            << reduction << ", bytes " << sizeof(T));
  constexpr std::int64_t tokens = 5;
  const bool none = reduction == VELO_REDUCTION_NONE;
  const std::vector<std::int64_t> loss_shape =
      none ? std::vector<std::int64_t>{tokens} : std::vector<std::int64_t>{};
  array<T> logits({tokens, n}), dlogits({tokens, n});
  array<std::int64_t> targets({tokens});
  array<float> loss(loss_shape), dloss(loss_shape), lse({tokens}), weights({n});
  logits.fill(1, 5), dloss.fill(2);
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t v = 0; v < width; ++v)
    weights[v] = weighted ? static_cast<float>(v * 7 % 5) * 0.5f : 1.0f;
  std::vector<double> losses(tokens), want_d(logits.size());
  double total = 0, divisor = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    targets[t] = t == 2 ? -7 : static_cast<std::int64_t>(t * 3 % width);
    if (t == 2) continue;
    const auto target = static_cast<std::size_t>(targets[t]);
    double sum = 0, all = 0;
    for (std::size_t v = 0; v < width; ++v) sum += std::exp(logits.at(t * width + v));
    for (std::size_t v = 0; v < width; ++v) {
      const double part =
          weights.at(v) * (smoothing / static_cast<double>(n) + (v == target ? 1 - smoothing : 0));
      all += part;
      losses[t] += part * (std::log(sum) - logits.at(t * width + v));
      want_d[t * width + v] = -part;
    }
    for (std::size_t v = 0; v < width; ++v)
      want_d[t * width + v] += std::exp(logits.at(t * width + v)) / sum * all;
    total += losses[t], divisor += weights.at(target);
  }
  const double by = reduction == VELO_REDUCTION_MEAN ? divisor : 1;
  for (std::size_t i = 0; i < want_d.size(); ++i)
    want_d[i] *= none ? dloss.at(i / width) : dloss.at(0) / by;
  velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
  f.ignore_index = -7, f.reduction = reduction, f.label_smoothing = smoothing;
  velo_cross_entropy_backward_args b = backward_of(dloss, logits, targets, lse, dlogits);
  b.ignore_index = -7, b.reduction = reduction, b.label_smoothing = smoothing;
  if (weighted) f.class_weights = b.class_weights = weights.tensor();
  VELO_RUN(velo_cross_entropy(s.stream(), &f));
  require_close(loss, none ? losses : std::vector<double>{total / by}, 2e-6, 2e-5);
  VELO_RUN(velo_cross_entropy_backward(s.stream(), &b));
  require_close(dlogits, want_d, rounding<T>() + 4e-6, 4e-6);
  b.dlogits = b.logits;
  VELO_RUN(velo_cross_entropy_backward(s.stream(), &b));
  require_close(logits, want_d, rounding<T>() + 4e-6, 4e-6);
}

}  // namespace

TEST_CASE("cross_entropy weighs classes and smooths labels by its formula, for every kernel") {
  for (const char* op : {"cross_entropy", "cross_entropy_backward"}) {
    for_each_kernel(op, [](session& s) {
      for (const std::int64_t reduction :
           {VELO_REDUCTION_NONE, VELO_REDUCTION_MEAN, VELO_REDUCTION_SUM}) {
        for (const std::int64_t n : {7, 33, 5000}) {
          check_smoothed<float>(s, n, true, 0, reduction);
          check_smoothed<float>(s, n, false, 0.1, reduction);
          check_smoothed<float>(s, n, true, 0.25, reduction);
          check_smoothed<bf16>(s, n, true, 0.25, reduction);
          check_smoothed<f16>(s, n, true, 1, reduction);
        }
      }
    });
  }
}

TEST_CASE("cross_entropy's weighted and smoothed gradient is the slope of its loss") {
  session s;
  array<float> logits({3, 9}), loss({}), dloss({}), lse({3}), d({3, 9}), weights({9});
  array<std::int32_t> targets({3});
  logits.fill(1, 2), weights.fill(2), targets[0] = 4, targets[1] = 0, targets[2] = -100;
  dloss[0] = 1, weights[4] = 0.75f, weights[0] = 1.5f;
  velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
  f.class_weights = weights.tensor(), f.label_smoothing = 0.3;
  VELO_RUN(velo_cross_entropy(s.stream(), &f));
  velo_cross_entropy_backward_args b = backward_of(dloss, logits, targets, lse, d);
  b.class_weights = weights.tensor(), b.label_smoothing = 0.3;
  VELO_RUN(velo_cross_entropy_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_cross_entropy(s.stream(), &f));
    return loss.at(0);
  };
  check_slope(logits, d, objective, 1e-3);
}

TEST_CASE("cross_entropy refuses weights of another number of classes and smoothing beyond 1") {
  session s;
  array<float> logits({2, 4}), loss({}), lse({2}), three({3});
  array<std::int64_t> targets({2});
  loss.fill(1);
  using args = velo_cross_entropy_args;
  check_refusals(
      s, velo_cross_entropy, forward_of(logits, targets, loss, lse), loss,
      {{[&](args& f) { f.class_weights = three.tensor(); }, VELO_ERR_SHAPE,
        "args.class_weights.shape"},
       {[](args& f) { f.label_smoothing = 1.5; }, VELO_ERR_ARGUMENT, "args.label_smoothing"},
       {[](args& f) { f.label_smoothing = -0.5; }, VELO_ERR_ARGUMENT, "args.label_smoothing"}});
}

TEST_CASE("cross_entropy's gradient is the slope of its loss") {
  session s;
  array<float> logits({2, 9}), loss({}), dloss({}), lse({2}), d({2, 9});
  array<std::int32_t> targets({2});
  logits.fill(1, 2), targets[0] = 4, targets[1] = 0, dloss[0] = 1;
  velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
  VELO_RUN(velo_cross_entropy(s.stream(), &f));
  velo_cross_entropy_backward_args b = backward_of(dloss, logits, targets, lse, d);
  VELO_RUN(velo_cross_entropy_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_cross_entropy(s.stream(), &f));
    return loss.at(0);
  };
  check_slope(logits, d, objective, 1e-3);
}

TEST_CASE("cross_entropy follows IEEE where logits are infinite or NaN") {
  for_each_kernel("cross_entropy", [](session& s) {
    array<float> logits({6, 40}), loss({6}), lse({6});
    array<std::int32_t> targets({6});
    logits.fill(1);
    for (std::size_t t = 0; t < 6; ++t) targets[t] = 5;
    logits[0] = std::nanf(""), logits[40 + 39] = std::nanf("");
    logits[80] = -HUGE_VALF;
    for (std::size_t i = 120; i < 160; ++i) logits[i] = i == 125 ? 1.0f : -HUGE_VALF;
    logits[160 + 6] = logits[200 + 5] = HUGE_VALF;
    velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
    f.reduction = VELO_REDUCTION_NONE;
    VELO_RUN(velo_cross_entropy(s.stream(), &f));
    CHECK(std::isnan(loss.at(0)));
    CHECK(std::isnan(loss.at(1)));
    CHECK(std::isfinite(loss.at(2)));
    CHECK(loss.at(3) == Approx(0).margin(1e-6));
    CHECK(lse.at(4) == HUGE_VAL);
    CHECK(loss.at(4) == HUGE_VAL);  // a target beside infinity has probability 0
    CHECK(lse.at(5) == HUGE_VAL);
    CHECK(std::isnan(loss.at(5)));  // a target that is infinite: infinity less infinity
  });
}

TEST_CASE("cross_entropy of a row with NaN is NaN whatever stands beside it") {
  for_each_kernel("cross_entropy", [](session& s) {
    for (const float beside : {std::nanf(""), -HUGE_VALF, HUGE_VALF}) {
      for (const std::size_t at : {0, 21, 2999}) {
        INFO(beside << " beside NaN at " << at);
        array<float> logits({1, 3000}), loss({1}), lse({1});
        array<std::int64_t> targets({1});
        for (std::size_t i = 0; i < 3000; ++i) logits[i] = beside;
        logits[at] = std::nanf(""), targets[0] = 5;
        velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
        f.reduction = VELO_REDUCTION_NONE;
        VELO_RUN(velo_cross_entropy(s.stream(), &f));
        CHECK(std::isnan(lse.at(0)));
        CHECK(std::isnan(loss.at(0)));
      }
    }
  });
}

TEST_CASE("cross_entropy finds the largest logit wherever it stands") {
  for_each_kernel("cross_entropy", [](session& s) {
    constexpr std::int64_t n = 5000;
    array<float> logits({6, n}), loss({}), lse({6});
    array<std::int32_t> targets({6});
    for (std::size_t t = 0; t < 6; ++t) {
      targets[t] = 17;
      for (std::size_t i = 0; i < n; ++i) {
        const auto at = static_cast<double>(i);
        const double rows[] = {at / 20,
                               -at / 20,
                               i == 4321 ? 90.0 : 0.0,
                               i == 2000 ? 39.0 : 0.0,
                               at > 3000 ? at - 3000 : -HUGE_VAL,
                               at / 50 - 3e4};
        logits[t * n + i] = static_cast<float>(rows[t]);
      }
    }
    velo_cross_entropy_args f = forward_of(logits, targets, loss, lse);
    VELO_RUN(velo_cross_entropy(s.stream(), &f));
    for (std::size_t t = 0; t < 6; ++t) {
      INFO("row " << t);
      double largest = -HUGE_VAL, sum = 0;
      for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, logits.at(t * n + i));
      for (std::size_t i = 0; i < n; ++i) sum += std::exp(logits.at(t * n + i) - largest);
      CHECK(lse.at(t) == Approx(largest + std::log(sum)).epsilon(2e-7).margin(2e-6));
    }
  });
}

TEST_CASE("cross_entropy refuses targets out of range before it writes anything") {
  session s;
  array<float> logits({2, 4}), loss({}), dloss({}), lse({2});
  array<std::int64_t> targets({2}), three({3});
  logits.fill(1), loss.fill(2);
  const auto before = logits.bytes();
  velo_cross_entropy_args f = VELO_CROSS_ENTROPY_ARGS_INIT;
  f.logits = logits.tensor(), f.targets = targets.tensor(), f.loss = loss.tensor();
  velo_cross_entropy_backward_args b = backward_of(dloss, logits, targets, lse, logits);
  targets[0] = 1;
  for (const std::int64_t bad : {std::int64_t{4}, std::int64_t{-1}, INT64_MIN}) {
    targets[1] = bad;
    CHECK_REFUSED(velo_cross_entropy(s.stream(), &f), VELO_ERR_ARGUMENT, "args.targets");
    CHECK_REFUSED(velo_cross_entropy_backward(s.stream(), &b), VELO_ERR_ARGUMENT, "args.targets");
  }
  CHECK(logits.bytes() == before);
  f.targets = three.tensor();
  CHECK_REFUSED(velo_cross_entropy(s.stream(), &f), VELO_ERR_SHAPE, "args.targets.shape");
  f.targets = targets.tensor(), f.reduction = VELO_REDUCTION_NONE;
  CHECK_REFUSED(velo_cross_entropy(s.stream(), &f), VELO_ERR_RANK, "args.loss.shape");
}
