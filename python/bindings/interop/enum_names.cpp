// SPDX-License-Identifier: Apache-2.0
#include "interop/enum_names.h"

#include <array>
#include <utility>

#include "interop/errors.h"

namespace feedline::python {
namespace {

template <typename T, std::size_t N>
using EnumNames = std::array<std::pair<std::string_view, T>, N>;

template <typename Known>
auto look_up(const char* subject, const Known& words, std::string_view word) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    known += (known.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  raise_config(std::string(subject) + ": \"" + std::string(word) + "\" is not one of " + known);
}

constexpr EnumNames<DType, 13> kDTypes{{{"uint8", DType::kUint8},
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
constexpr EnumNames<Fidelity, 3> kFidelities{
    {{"exact", Fidelity::kExact}, {"fast", Fidelity::kFast}, {"nvjpeg", Fidelity::kNvjpeg}}};
constexpr EnumNames<Layout, 2> kLayouts{{{"NCHW", Layout::kNchw}, {"NHWC", Layout::kNhwc}}};
constexpr EnumNames<MixMode, 4> kMixModes{
    {{"batch", MixMode::kBatch}, {"elem", MixMode::kElem}, {"half", MixMode::kHalf}, {"pair", MixMode::kPair}}};
constexpr EnumNames<MixPartner, 2> kMixPartners{{{"roll", MixPartner::kRoll}, {"flip", MixPartner::kFlip}}};
// There is no word for kReport: a loader whose rows the caller fills is created in another way.
constexpr EnumNames<OnError, 3> kOnError{
    {{"raise", OnError::kRaise}, {"skip", OnError::kSkip}, {"replace", OnError::kReplace}}};
constexpr EnumNames<Uneven, 3> kUneven{{{"pad", Uneven::kPad}, {"drop", Uneven::kDrop}, {"exact", Uneven::kExact}}};
constexpr EnumNames<LongDocuments, 3> kLongDocuments{
    {{"split", LongDocuments::kSplit}, {"truncate", LongDocuments::kTruncate}, {"drop", LongDocuments::kDrop}}};
constexpr EnumNames<PackLabels, 2> kPackLabels{
    {{"input_ids", PackLabels::kSame}, {"next_token", PackLabels::kNextToken}}};
constexpr EnumNames<PackMethod, 2> kPackMethods{{{"best_fit", PackMethod::kBestFit}, {"concat", PackMethod::kConcat}}};
constexpr EnumNames<Missing, 3> kMissing{
    {{"error", Missing::kError}, {"skip", Missing::kSkip}, {"none", Missing::kNone}}};
constexpr EnumNames<Verify, 3> kVerify{
    {{"", Verify::kNone}, {"manifest", Verify::kManifest}, {"headers", Verify::kHeaders}}};
constexpr EnumNames<base::ReadAheadMode, 4> kReadAheadModes{{{"auto", base::ReadAheadMode::kAuto},
                                                             {"never", base::ReadAheadMode::kNever},
                                                             {"always", base::ReadAheadMode::kAlways},
                                                             {"threads", base::ReadAheadMode::kThreads}}};
constexpr EnumNames<BatchForm, 3> kForms{
    {{"stack", BatchForm::kDense}, {"pad", BatchForm::kPadded}, {"list", BatchForm::kList}}};
constexpr EnumNames<Content, 4> kContents{
    {{"array", Content::kArray}, {"bytes", Content::kBytes}, {"text", Content::kText}, {"json", Content::kJson}}};

template <typename T, std::size_t N>
std::string_view name_in(const EnumNames<T, N>& words, T value) {
  for (const auto& [name, known] : words)
    if (known == value) return name;
  return "unknown";
}

}  // namespace

template <>
std::span<const std::pair<std::string_view, DType>> enum_names() {
  return kDTypes;
}
template <>
std::span<const std::pair<std::string_view, Fidelity>> enum_names() {
  return kFidelities;
}
template <>
std::span<const std::pair<std::string_view, Layout>> enum_names() {
  return kLayouts;
}
template <>
std::span<const std::pair<std::string_view, MixMode>> enum_names() {
  return kMixModes;
}
template <>
std::span<const std::pair<std::string_view, MixPartner>> enum_names() {
  return kMixPartners;
}
template <>
std::span<const std::pair<std::string_view, OnError>> enum_names() {
  return kOnError;
}
template <>
std::span<const std::pair<std::string_view, Uneven>> enum_names() {
  return kUneven;
}
template <>
std::span<const std::pair<std::string_view, LongDocuments>> enum_names() {
  return kLongDocuments;
}
template <>
std::span<const std::pair<std::string_view, PackLabels>> enum_names() {
  return kPackLabels;
}
template <>
std::span<const std::pair<std::string_view, PackMethod>> enum_names() {
  return kPackMethods;
}
template <>
std::span<const std::pair<std::string_view, Missing>> enum_names() {
  return kMissing;
}
template <>
std::span<const std::pair<std::string_view, Verify>> enum_names() {
  return kVerify;
}
template <>
std::span<const std::pair<std::string_view, base::ReadAheadMode>> enum_names() {
  return kReadAheadModes;
}

std::string repr_of(nanobind::handle object) noexcept {
  PyObject* text = PyObject_Repr(object.ptr());
  const char* words = text != nullptr ? PyUnicode_AsUTF8AndSize(text, nullptr) : nullptr;
  if (words == nullptr) PyErr_Clear();
  std::string repr = words != nullptr && *words != '\0' ? words : "...";
  Py_XDECREF(text);
  return repr;
}

void raise_unknown_name(const std::string& subject, const std::string& words, const std::string& wrong) {
  raise_config(subject + " must be one of " + words + ", not " + wrong);
}

DType dtype_of(std::string_view word) { return look_up("dtype", enum_names<DType>(), word); }

Layout layout_of(std::string_view word) { return look_up("layout", enum_names<Layout>(), word); }

Interpolation interpolation_of(std::string_view word) {
  constexpr EnumNames<Interpolation, 8> kNames{{{"nearest", Interpolation::kNearest},
                                                {"box", Interpolation::kBox},
                                                {"bilinear", Interpolation::kBilinear},
                                                {"bicubic", Interpolation::kBicubic},
                                                {"lanczos", Interpolation::kLanczos},
                                                {"torch_bilinear", Interpolation::kTorchBilinear},
                                                {"torch_bicubic", Interpolation::kTorchBicubic},
                                                {"random", Interpolation::kRandom}}};
  return look_up("interpolation", kNames, word);
}

ColorMode color_mode_of(std::string_view word) {
  constexpr EnumNames<ColorMode, 2> kNames{{{"RGB", ColorMode::kRgb}, {"L", ColorMode::kL}}};
  return look_up("mode", kNames, word);
}

Documents documents_of(std::string_view word) {
  constexpr EnumNames<Documents, 3> kNames{
      {{"pack", Documents::kPack}, {"apart", Documents::kApart}, {"whole", Documents::kWhole}}};
  return look_up("documents", kNames, word);
}

MixUntil mix_until_of(std::string_view word) {
  constexpr EnumNames<MixUntil, 3> kNames{
      {{"samples", MixUntil::kSamples}, {"first", MixUntil::kFirst}, {"last", MixUntil::kLast}}};
  return look_up("until", kNames, word);
}

BatchForm batch_form_of(std::string_view word) { return look_up("collate: form", kForms, word); }
std::string_view enum_name(BatchForm form) { return name_in(kForms, form); }
Content content_of(std::string_view word) { return look_up("kind", kContents, word); }
std::string_view enum_name(Content content) { return name_in(kContents, content); }

}  // namespace feedline::python
