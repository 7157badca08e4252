// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomChoice final : public OperationWith<RandomChoice, op::RandomChoice> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_choice";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomChoice::chains>("chains"), argument<&op::RandomChoice::p>("p")});

  std::string describe() const override {
    std::string text;
    for (const auto& operations : args_.chains) text += (text.empty() ? "[" : ", ") + listed(operations);
    text += "]";
    for (const double& weight : args_.p) text += (&weight == args_.p.data() ? ", p=(" : ", ") + number(weight);
    return text + (args_.p.empty() ? "" : ")");
  }
  Properties properties() const override { return {.is_random = true}; }
  std::span<const std::vector<Operation>> chains() const override { return args_.chains; }

  Result<void> infer(Inference& image) const override {
    if (args_.chains.empty()) return config_error("there is nothing to choose from");
    FEEDLINE_CHECK_OK(check_weights());
    std::optional<Inferred> all;
    const Inferred before = image.state;
    for (std::size_t i = 0; i < args_.chains.size(); ++i) {
      FEEDLINE_TRY(const Inferred one, image.nested(args_.chains[i], before));
      if (!args_.p.empty() && args_.p[i] == 0) continue;
      if (all) FEEDLINE_CHECK_OK(image.becomes_either(one, *all));
      if (!all) image.state = one;
      all = image.state;
    }
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const std::size_t chosen = draw_choice(args_.chains.size(), args_.p, random);
    drawer.record_number("choice", static_cast<double>(chosen));
    return drawer.draw_nested(args_.chains[chosen]);
  }

 private:
  Result<void> check_weights() const {
    if (args_.p.empty()) return {};
    if (args_.p.size() != args_.chains.size())
      return config_error(std::to_string(args_.chains.size()) + " chains but " + std::to_string(args_.p.size()) +
                          " numbers in p; give one for each chain");
    double sum = 0;
    for (const double weight : args_.p) {
      if (!(weight >= 0) || !std::isfinite(weight)) return config_error("p must not be negative, got " + shown(weight));
      sum += weight;
    }
    return sum > 0 ? Result<void>{} : config_error("p must have a number above 0");
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_choice, RandomChoice)
