// SPDX-License-Identifier: Apache-2.0
// An operation of a plugin (feedline/plugin/plugin.h).

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/plugin_call.h"
#include "transform/drawer.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/plugin/plugin_operations.h"

namespace feedline::op {

struct Apply {
  std::string operation;
  std::vector<std::string> names;  // of the given arguments
  std::vector<double> values;      // one per name
};

}  // namespace feedline::op

namespace feedline::transform {
namespace {

using Plugin = feedline_operation_v1;

std::span<const feedline_argument> arguments_of(const Plugin& plugin) {
  return {plugin.arguments, plugin.argument_count};
}

// Returns the values of all arguments in order; those that were not given have their initial value.
std::vector<double> all_values(const Plugin& plugin, const op::Apply& given) {
  std::vector<double> values;
  for (const feedline_argument& argument : arguments_of(plugin)) {
    const auto named = std::ranges::find(given.names, std::string_view(argument.name));
    const bool is_given = named != given.names.end();
    values.push_back(is_given ? given.values[static_cast<std::size_t>(named - given.names.begin())] : argument.initial);
  }
  return values;
}

std::string listed_names(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "none" : text;
}

Result<void> check_arguments(const op::Apply& given) {
  const Plugin* const plugin = plugin_operation(given.operation);
  if (plugin == nullptr)
    return config_error("the operation '" + given.operation + "' is not registered" +
                        "; the operations of plugins are: " + listed_names(plugin_operation_names()) +
                        "; first call feedline.load_plugin(path), or import the module that has @feedline.operation");
  if (given.names.size() != given.values.size()) return config_error("names and values must have the same length");
  std::vector<std::string_view> known;
  for (const feedline_argument& argument : arguments_of(*plugin)) known.emplace_back(argument.name);
  for (const std::string& name : given.names)
    if (std::ranges::find(known, name) == known.end())
      return config_error("'" + given.operation + "' has no argument '" + name +
                          "'; its arguments are: " + listed_names(known));
  const std::vector<double> values = all_values(*plugin, given);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return config_error("'" + given.operation + "': give the argument '" + std::string(known[i]) +
                          "' as a finite number");
  if (plugin->check == nullptr) return {};
  return base::call_plugin("'" + given.operation + "'", [&](feedline_message* message) {
    const int code = plugin->check(plugin->context, values.data(), message);
    return code == FEEDLINE_OK ? FEEDLINE_OK : int{FEEDLINE_BAD_ARGUMENT};
  });
}

feedline_pixels pixels_of(std::uint8_t* data, const memory::PixelView& view) {
  return {data, view.width, view.height, view.channels, view.stride};
}

// The plugin's operation with its arguments.
struct PluginKernel : OwnKernel {
  const Plugin* plugin = nullptr;  // never destroyed; nullptr for default arguments
  std::vector<double> arguments;

  explicit PluginKernel(const op::Apply& given) : plugin(plugin_operation(given.operation)) {
    if (plugin == nullptr) return;
    arguments = all_values(*plugin, given);
    run = run_plugin;
    works_in_place = plugin->output_size == nullptr;
    moves_pixels = !works_in_place || (plugin->flags & FEEDLINE_OPERATION_MOVES_PIXELS) != 0;
  }

  Result<Size> size_after(Size size) const {
    if (works_in_place) return size;
    int width = size.width, height = size.height;
    FEEDLINE_CHECK_OK(call([&](feedline_message* message) {
      return plugin->output_size(plugin->context, arguments.data(), size.width, size.height, &width, &height, message);
    }));
    return Size{.height = height, .width = width};
  }

 private:
  template <typename Call>
  Result<void> call(Call&& call) const {
    auto done = base::call_plugin("the plugin's operation '" + std::string(plugin->name) + "'", call);
    if (!done && done.error().code == ErrorCode::kData) done.error().where.stage = "transform";
    return done;
  }

  static Result<void> run_plugin(const OwnKernel& own, const memory::PixelView& in, const KernelValues& values,
                                 memory::PixelBuffer& out) {
    const auto& self = static_cast<const PluginKernel&>(own);
    const std::uint64_t random = static_cast<std::uint64_t>(values[0]) << 32U | static_cast<std::uint64_t>(values[1]);
    if (self.works_in_place)
      FEEDLINE_CHECK_OK(copy(in, out));
    else  // the size that draw() got
      FEEDLINE_CHECK_OK(out.resize(static_cast<int>(values[2]), static_cast<int>(values[3]), in.channels));
    const feedline_pixels made = pixels_of(out.row(0), out.view());
    // the plugin does not write to `from`, whose pixels are constant
    const feedline_pixels from = self.works_in_place ? made : pixels_of(const_cast<std::uint8_t*>(in.data), in);
    return self.call([&](feedline_message* message) {
      return self.plugin->run(self.plugin->context, self.arguments.data(), random, &from, &made, message);
    });
  }
};

class Apply final : public OperationWith<Apply, op::Apply> {
 public:
  explicit Apply(op::Apply arguments) : OperationWith(std::move(arguments)), kernel_(args_) {}
  static constexpr std::string_view kName = "apply";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Apply::operation>("operation"), argument<&op::Apply::names>("names"),
                               argument<&op::Apply::values>("values")});

  static Result<Operation> made(op::Apply arguments) {
    FEEDLINE_CHECK_OK(check_arguments(arguments));
    return Operation(std::move(arguments));
  }

  // Includes the version, because keys of cached pixels contain this text.
  std::string describe() const override {
    std::string text = "'" + args_.operation;
    if (kernel_.plugin != nullptr && kernel_.plugin->version != nullptr)
      text += " " + std::string(kernel_.plugin->version);
    text += "'";
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i)
      text += ", " + std::string(kernel_.plugin->arguments[i].name) + "=" + number(kernel_.arguments[i]);
    return text;
  }
  Properties properties() const override {
    return {.is_random = kernel_.plugin != nullptr && (kernel_.plugin->flags & FEEDLINE_OPERATION_IS_RANDOM) != 0,
            .moves_pixels = kernel_.moves_pixels,
            .changes_size = !kernel_.works_in_place,
            .is_automatic = kernel_.moves_pixels};  // masks and boxes cannot follow
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_arguments(args_));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    if (kernel_.works_in_place) return {};
    if (!image.state.size) return image.becomes_any_size();
    FEEDLINE_TRY(const Size size, kernel_.size_after(*image.state.size));
    return image.becomes(size);
  }
  Result<void> draw(Drawer& drawer) const override {
    FEEDLINE_TRY(const Size size, kernel_.size_after(drawer.size()));
    FEEDLINE_CHECK_OK(drawer.check_outcome(size));
    KernelValues values{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
    if (properties().is_random) {
      base::Random random = drawer.random();
      values[0] = static_cast<double>(random.bits());
      values[1] = static_cast<double>(random.bits());
    }
    drawer.canvas().run(kernel_, values, size);
    return {};
  }

 private:
  const PluginKernel kernel_;
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(apply, Apply)
