// SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <array>
#include <utility>

#include "errors.h"

namespace feedline::python {
namespace {

template <typename T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

template <typename Known>
auto look_up(const char* subject, const Known& words, std::string_view word) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    known += (known.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  raise_config(std::string(subject) + ": \"" + std::string(word) + "\" is not one of " + known);
}

constexpr Words<DType, 13> kDTypes{{{"uint8", DType::kUint8},
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
                                    {"float64", DType::kFloat64},
                                    {"bfloat16", DType::kBfloat16}}};
constexpr Words<Fidelity, 3> kFidelities{
    {{"exact", Fidelity::kExact}, {"fast", Fidelity::kFast}, {"nvjpeg", Fidelity::kNvjpeg}}};
constexpr Words<Layout, 2> kLayouts{{{"NCHW", Layout::kNchw}, {"NHWC", Layout::kNhwc}}};
constexpr Words<MixMode, 4> kMixModes{
    {{"batch", MixMode::kBatch}, {"elem", MixMode::kElem}, {"half", MixMode::kHalf}, {"pair", MixMode::kPair}}};
constexpr Words<MixPartner, 2> kMixPartners{{{"roll", MixPartner::kRoll}, {"flip", MixPartner::kFlip}}};
// There is no word for kReport: a loader whose rows the caller fills is created in another way.
constexpr Words<OnError, 3> kOnError{
    {{"raise", OnError::kRaise}, {"skip", OnError::kSkip}, {"replace", OnError::kReplace}}};
constexpr Words<Uneven, 3> kUneven{{{"pad", Uneven::kPad}, {"drop", Uneven::kDrop}, {"exact", Uneven::kExact}}};
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

template <>
std::span<const std::pair<std::string_view, DType>> words_of() {
  return kDTypes;
}
template <>
std::span<const std::pair<std::string_view, Fidelity>> words_of() {
  return kFidelities;
}
template <>
std::span<const std::pair<std::string_view, Layout>> words_of() {
  return kLayouts;
}
template <>
std::span<const std::pair<std::string_view, MixMode>> words_of() {
  return kMixModes;
}
template <>
std::span<const std::pair<std::string_view, MixPartner>> words_of() {
  return kMixPartners;
}
template <>
std::span<const std::pair<std::string_view, OnError>> words_of() {
  return kOnError;
}
template <>
std::span<const std::pair<std::string_view, Uneven>> words_of() {
  return kUneven;
}

std::string repr_of(nanobind::handle object) noexcept {
  PyObject* text = PyObject_Repr(object.ptr());
  const char* words = text != nullptr ? PyUnicode_AsUTF8AndSize(text, nullptr) : nullptr;
  if (words == nullptr) PyErr_Clear();
  std::string repr = words != nullptr && *words != '\0' ? words : "...";
  Py_XDECREF(text);
  return repr;
}

void raise_wrong_word(const std::string& subject, const std::string& words, const std::string& wrong) {
  raise_config(subject + " must be one of " + words + ", not " + wrong);
}

DType dtype_of(std::string_view word) { return look_up("dtype", words_of<DType>(), word); }

Layout layout_of(std::string_view word) { return look_up("layout", words_of<Layout>(), word); }

Interpolation interpolation_of(std::string_view word) {
  constexpr Words<Interpolation, 8> kWords{{{"nearest", Interpolation::kNearest},
                                            {"box", Interpolation::kBox},
                                            {"bilinear", Interpolation::kBilinear},
                                            {"bicubic", Interpolation::kBicubic},
                                            {"lanczos", Interpolation::kLanczos},
                                            {"torch_bilinear", Interpolation::kTorchBilinear},
                                            {"torch_bicubic", Interpolation::kTorchBicubic},
                                            {"random", Interpolation::kRandom}}};
  return look_up("interpolation", kWords, word);
}

ColorMode color_mode_of(std::string_view word) {
  constexpr Words<ColorMode, 2> kWords{{{"RGB", ColorMode::kRgb}, {"L", ColorMode::kL}}};
  return look_up("mode", kWords, word);
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

Missing missing_of(std::string_view word) {
  constexpr Words<Missing, 3> kWords{{{"error", Missing::kError}, {"skip", Missing::kSkip}, {"none", Missing::kNone}}};
  return look_up("missing", kWords, word);
}

Verify verify_of(std::string_view word) {
  constexpr Words<Verify, 3> kWords{
      {{"", Verify::kNone}, {"manifest", Verify::kManifest}, {"headers", Verify::kHeaders}}};
  return look_up("verify", kWords, word);
}

BatchForm batch_form_of(std::string_view word) { return look_up("collate: form", kForms, word); }
std::string_view word_of(BatchForm form) { return word_in(kForms, form); }
Content content_of(std::string_view word) { return look_up("kind", kContents, word); }
std::string_view word_of(Content content) { return word_in(kContents, content); }

}  // namespace feedline::python
