// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomOrder final : public OperationWith<RandomOrder, op::RandomOrder> {
 public:
  explicit RandomOrder(op::RandomOrder arguments) : OperationWith(std::move(arguments)), chain_{args_.operations} {}
  static constexpr std::string_view kName = "random_order";
  static constexpr auto kArguments = std::to_array<Argument>({argument<&op::RandomOrder::operations>("chain")});

  std::string describe() const override { return listed(args_.operations); }
  Properties properties() const override { return {.is_random = true}; }
  std::span<const std::vector<Operation>> chains() const override { return chain_; }

  // Any operation may be the first, so each must be applicable to the image before all of them.
  Result<void> infer(Inference& image) const override {
    const Inferred before = image.state;
    Inferred after = before;
    int resizing = 0;
    for (const Operation& operation : args_.operations) {
      FEEDLINE_TRY(const Inferred one, image.nested(std::span(&operation, 1), before));
      if (one.channels != before.channels && after.channels != before.channels && one.channels != after.channels)
        return config_error("the number of channels would depend on the order");
      if (one.channels != before.channels) after.channels = one.channels;
      if (!changes_size(operation)) continue;
      ++resizing;
      after.size = one.size;
    }
    image.state = after;
    if (resizing > 1) image.forget_size_by_chance();
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const std::size_t count = args_.operations.size();
    const Order order = draw_order(count, random);
    for (std::size_t i = 0; i < count; ++i) drawer.record_number("order", order[i], i > 0);
    for (std::size_t i = 0; i < count; ++i) FEEDLINE_CHECK_OK(drawer.draw_nested(order[i], args_.operations[order[i]]));
    return {};
  }

 private:
  const std::array<std::vector<Operation>, 1> chain_;
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_order, RandomOrder)
