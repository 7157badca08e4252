// SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <array>
#include <utility>

#include "errors.h"

namespace feedline::python {
namespace {

template <typename T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

template <typename T, std::size_t N>
T look_up(const char* subject, const Words<T, N>& words, std::string_view word) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    known += (known.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  raise_config(std::string(subject) + ": \"" + std::string(word) + "\" is not one of " + known);
}

constexpr Words<OnError, 4> kOnError{{{"raise", OnError::kRaise},
                                      {"skip", OnError::kSkip},
                                      {"replace", OnError::kReplace},
                                      {"report", OnError::kReport}}};
constexpr Words<BatchForm, 3> kForms{
    {{"stack", BatchForm::kDense}, {"pad", BatchForm::kPadded}, {"list", BatchForm::kList}}};
constexpr Words<Content, 4> kContents{
    {{"array", Content::kArray}, {"bytes", Content::kBytes}, {"text", Content::kText}, {"json", Content::kJson}}};

template <typename T, std::size_t N>
std::string_view word_in(const Words<T, N>& words, T value) {
  for (const auto& [name, known] : words)
    if (known == value) return name;
  return "unknown";
}

}  // namespace

DType dtype_of(std::string_view word) {
  constexpr Words<DType, 12> kWords{{{"uint8", DType::kUint8},
                                     {"int64", DType::kInt64},
                                     {"float16", DType::kFloat16},
                                     {"float32", DType::kFloat32},
                                     {"bool", DType::kBool},
                                     {"int8", DType::kInt8},
                                     {"int16", DType::kInt16},
                                     {"int32", DType::kInt32},
                                     {"uint16", DType::kUint16},
                                     {"uint32", DType::kUint32},
                                     {"uint64", DType::kUint64},
                                     {"float64", DType::kFloat64}}};
  return look_up("dtype", kWords, word);
}

Interpolation interpolation_of(std::string_view word) {
  constexpr Words<Interpolation, 4> kWords{{{"nearest", Interpolation::kNearest},
                                            {"box", Interpolation::kBox},
                                            {"bilinear", Interpolation::kBilinear},
                                            {"bicubic", Interpolation::kBicubic}}};
  return look_up("interpolation", kWords, word);
}

PaddingMode padding_mode_of(std::string_view word) {
  constexpr Words<PaddingMode, 4> kWords{{{"constant", PaddingMode::kConstant},
                                          {"edge", PaddingMode::kEdge},
                                          {"reflect", PaddingMode::kReflect},
                                          {"symmetric", PaddingMode::kSymmetric}}};
  return look_up("padding_mode", kWords, word);
}

ColorMode color_mode_of(std::string_view word) {
  constexpr Words<ColorMode, 2> kWords{{{"RGB", ColorMode::kRgb}, {"L", ColorMode::kL}}};
  return look_up("mode", kWords, word);
}

Fidelity fidelity_of(std::string_view word) {
  constexpr Words<Fidelity, 2> kWords{{{"exact", Fidelity::kExact}, {"fast", Fidelity::kFast}}};
  return look_up("fidelity", kWords, word);
}

Layout layout_of(std::string_view word) {
  constexpr Words<Layout, 2> kWords{{{"NCHW", Layout::kNchw}, {"NHWC", Layout::kNhwc}}};
  return look_up("layout", kWords, word);
}

OnError on_error_of(std::string_view word) { return look_up("on_error", kOnError, word); }

Uneven uneven_of(std::string_view word) {
  constexpr Words<Uneven, 3> kWords{{{"pad", Uneven::kPad}, {"drop", Uneven::kDrop}, {"exact", Uneven::kExact}}};
  return look_up("uneven", kWords, word);
}

Documents documents_of(std::string_view word) {
  constexpr Words<Documents, 2> kWords{{{"pack", Documents::kPack}, {"apart", Documents::kApart}}};
  return look_up("documents", kWords, word);
}

MixUntil mix_until_of(std::string_view word) {
  constexpr Words<MixUntil, 3> kWords{
      {{"samples", MixUntil::kSamples}, {"first", MixUntil::kFirst}, {"last", MixUntil::kLast}}};
  return look_up("until", kWords, word);
}

std::string_view word_of(OnError action) {
  for (const auto& [name, value] : kOnError) {
    if (value == action) return name;
  }
  return "raise";
}

Missing missing_of(std::string_view word) {
  constexpr Words<Missing, 3> kWords{{{"error", Missing::kError}, {"skip", Missing::kSkip}, {"none", Missing::kNone}}};
  return look_up("missing", kWords, word);
}

BatchForm batch_form_of(std::string_view word) { return look_up("collate: form", kForms, word); }
std::string_view word_of(BatchForm form) { return word_in(kForms, form); }
std::string_view word_of(Content content) { return word_in(kContents, content); }

}  // namespace feedline::python
