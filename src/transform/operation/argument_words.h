// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of enumerators in the arguments and descriptions of operations; all other code uses these tables.

#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "feedline/operation.h"

namespace feedline::transform {

template <typename T>
using Word = std::pair<std::string_view, T>;

template <typename T>
inline constexpr std::array<Word<T>, 0> kWords{};

template <>
inline constexpr auto kWords<Interpolation> =
    std::to_array<Word<Interpolation>>({{"nearest", Interpolation::kNearest},
                                        {"box", Interpolation::kBox},
                                        {"bilinear", Interpolation::kBilinear},
                                        {"bicubic", Interpolation::kBicubic},
                                        {"lanczos", Interpolation::kLanczos},
                                        {"random", Interpolation::kRandom},
                                        {"torch_bilinear", Interpolation::kTorchBilinear},
                                        {"torch_bicubic", Interpolation::kTorchBicubic}});
template <>
inline constexpr auto kWords<PaddingMode> = std::to_array<Word<PaddingMode>>({{"constant", PaddingMode::kConstant},
                                                                              {"edge", PaddingMode::kEdge},
                                                                              {"reflect", PaddingMode::kReflect},
                                                                              {"symmetric", PaddingMode::kSymmetric}});
template <>
inline constexpr auto kWords<AutoAugmentPolicy> =
    std::to_array<Word<AutoAugmentPolicy>>({{"imagenet", AutoAugmentPolicy::kImageNet},
                                            {"cifar10", AutoAugmentPolicy::kCifar10},
                                            {"svhn", AutoAugmentPolicy::kSvhn}});
template <>
inline constexpr auto kWords<TorchvisionVersion> =
    std::to_array<Word<TorchvisionVersion>>({{"v1", TorchvisionVersion::kV1}, {"v2", TorchvisionVersion::kV2}});
template <>
inline constexpr auto kWords<BoxFormat> = std::to_array<Word<BoxFormat>>({{"XYXY", BoxFormat::kXyxy},
                                                                          {"XYWH", BoxFormat::kXywh},
                                                                          {"CXCYWH", BoxFormat::kCxcywh}});
template <>
inline constexpr auto kWords<ColorMode> = std::to_array<Word<ColorMode>>({{"RGB", ColorMode::kRgb},
                                                                          {"L", ColorMode::kL}});
template <>
inline constexpr auto kWords<PixelValues> = std::to_array<Word<PixelValues>>({{"uint8", PixelValues::kBytes},
                                                                              {"uint16", PixelValues::kUint16},
                                                                              {"float32", PixelValues::kFloat32},
                                                                              {"native", PixelValues::kNative}});
template <>
inline constexpr auto kWords<Fidelity> = std::to_array<Word<Fidelity>>({{"exact", Fidelity::kExact},
                                                                        {"fast", Fidelity::kFast},
                                                                        {"nvjpeg", Fidelity::kNvjpeg}});
template <>
inline constexpr auto kWords<PadPosition> = std::to_array<Word<PadPosition>>({{"center", PadPosition::kCenter},
                                                                              {"top_left", PadPosition::kTopLeft}});
template <>
inline constexpr auto kWords<Corner> = std::to_array<Word<Corner>>({{"top_left", Corner::kTopLeft},
                                                                    {"top_right", Corner::kTopRight},
                                                                    {"bottom_left", Corner::kBottomLeft},
                                                                    {"bottom_right", Corner::kBottomRight},
                                                                    {"center", Corner::kCenter}});
template <>
inline constexpr auto kWords<op::ClipSampling> =
    std::to_array<Word<op::ClipSampling>>({{"random", op::ClipSampling::kRandom},
                                           {"uniform", op::ClipSampling::kUniform},
                                           {"segments", op::ClipSampling::kSegments}});
template <>
inline constexpr auto kWords<op::RandomErasing::Noise> =
    std::to_array<Word<op::RandomErasing::Noise>>({{"const", op::RandomErasing::Noise::kNone},
                                                   {"rand", op::RandomErasing::Noise::kColour},
                                                   {"pixel", op::RandomErasing::Noise::kValues}});

// Requires: the table contains `value`.
template <typename Table>
constexpr std::string_view word_in(const Table& table, const auto& value) {
  for (const auto& [word, other] : table)
    if (other == value) return word;
  return "unknown";
}

template <typename T>
constexpr std::string_view word_of(T value) {
  return word_in(kWords<T>, value);
}

}  // namespace feedline::transform
