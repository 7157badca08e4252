// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomApply final : public OperationWith<RandomApply, op::RandomApply> {
 public:
  explicit RandomApply(op::RandomApply arguments) : OperationWith(std::move(arguments)), chain_{args_.operations} {}
  static constexpr std::string_view kName = "random_apply";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomApply::operations>("chain"), argument<&op::RandomApply::p>("p")});

  std::string describe() const override { return listed(args_.operations) + ", p=" + number(args_.p); }
  // A GPU supports only colour changes.
  Properties properties() const override {
    Properties properties{.is_random = true};
    for (const Operation& operation : args_.operations) {
      const std::size_t changes = operation->properties().colour_changes;
      if (changes == 0) return {.is_random = true};
      properties.colour_changes += changes;
    }
    properties.runs_on_device = properties.colour_changes > 0;
    return properties;
  }
  std::span<const std::vector<Operation>> chains() const override { return chain_; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    FEEDLINE_TRY(const Inferred done, image.nested(args_.operations, image.state));
    if (args_.p == 0) return {};
    if (args_.p != 1) return image.becomes_either(done, image.state);
    image.state = done;
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const bool applies = draw_coin(args_.p, random);
    drawer.record_number("applied", applies ? 1 : 0);
    return applies ? drawer.draw_nested(args_.operations) : Result<void>{};
  }

 private:
  const std::array<std::vector<Operation>, 1> chain_;
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_apply, RandomApply)
