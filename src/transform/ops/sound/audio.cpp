// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

// Larger rates and numbers of channels are assumed to be mistakes.
constexpr int kMostRate = 10'000'000, kMostChannel = 1023;

constexpr auto kDtypes = std::to_array<Word<DType>>({{"float32", DType::kFloat32}, {"int16", DType::kInt16}});

// None means all channels.
struct Channels : KindOf<std::vector<int>> {
  static constexpr bool kIsOptional = true;
  static bool read(const ArgumentValue& value, std::vector<int>& out) {
    out.clear();
    return std::holds_alternative<std::monostate>(value) || KindOf<std::vector<int>>::read(value, out);
  }
  static ArgumentValue show(const std::vector<int>& value) {
    return value.empty() ? ArgumentValue() : KindOf<std::vector<int>>::show(value);
  }
};

class Audio final : public OperationWith<Audio, op::Audio> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "audio";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Audio::rate>("rate"), argument<&op::Audio::mono>("mono"),
       argument<&op::Audio::channels, Channels>("channels"), argument<&op::Audio::offset>("offset"),
       argument<&op::Audio::duration>("duration"), argument<&op::Audio::random>("random"),
       argument<&op::Audio::dtype, WordKind<kDtypes>>("dtype")});

  std::string describe() const override {
    std::string text = args_.rate ? "rate=" + std::to_string(*args_.rate) : "rate=None";
    if (!args_.mono) text += ", mono=False";
    std::string channels;
    for (const int channel : args_.channels) channels += (channels.empty() ? "" : ", ") + std::to_string(channel);
    if (!channels.empty()) text += ", channels=[" + channels + "]";
    if (args_.offset != 0) text += ", offset=" + number(args_.offset);
    if (args_.duration) text += ", duration=" + number(*args_.duration);
    if (args_.random) text += ", random=True";
    return text + (args_.dtype == DType::kFloat32 ? "" : ", dtype=int16");
  }
  Properties properties() const override {
    return {.stage = Stage::kAudio, .is_random = args_.random, .audio = &args_};
  }

  Result<void> infer(Inference& /*image*/) const override {
    if (args_.rate && (*args_.rate < 1 || *args_.rate > kMostRate))
      return config_error("rate must be from 1 to " + std::to_string(kMostRate) + " Hz, got " +
                          std::to_string(*args_.rate));
    for (const int channel : args_.channels)
      if (channel < 0 || channel > kMostChannel)
        return config_error("channels are indexes from 0 to " + std::to_string(kMostChannel) + ", got " +
                            std::to_string(channel));
    if (args_.mono && !args_.channels.empty())
      return config_error("mono=True is the mean of all channels; pass mono=False with channels=");
    if (!std::isfinite(args_.offset) || args_.offset < 0)
      return config_error("offset must be 0 or more seconds, got " + shown(args_.offset));
    if (args_.duration && (!std::isfinite(*args_.duration) || *args_.duration <= 0))
      return config_error("duration must be more than 0 seconds, got " + shown(*args_.duration));
    if (args_.random && !args_.duration) return config_error("random=True needs duration=, the length of the part");
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(audio, Audio)
