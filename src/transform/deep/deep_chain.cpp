// SPDX-License-Identifier: Apache-2.0
#include "transform/deep/deep_chain.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "transform/compiled_chain.h"
#include "transform/operation/argument_words.h"
#include "transform/operation/image_operation.h"
#include "transform/operation/inference.h"

namespace feedline::transform {
namespace {

const op::Decode* find_decode(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations)
    if (const op::Decode* const decode = operation->properties().decode) return decode;
  return nullptr;
}

std::string with_unit(int channels) { return std::to_string(channels) + (channels == 1 ? " channel" : " channels"); }

}  // namespace

bool keeps_stored_values(const std::vector<Operation>& operations) {
  const op::Decode* const decode = find_decode(operations);
  return decode != nullptr && decode->values != PixelValues::kBytes;
}

const op::Decode& DeepChain::decode() const { return *find_decode(operations_); }

Result<std::shared_ptr<const DeepChain>> DeepChain::compile(std::vector<Operation> operations, DeepInput input,
                                                            std::optional<DType> dtype, Layout layout,
                                                            Chain::OutputSize size) {
  FEEDLINE_TRY(const Inferred inferred, infer(operations));
  if (!inferred.size && size == Chain::OutputSize::kFixed)
    return config_error("the chain has no fixed output size" +
                        (inferred.open_by.empty() ? "" : " (it varies after " + inferred.open_by + ")") +
                        ": add resize((height, width)), center_crop or a random crop");
  const DType stored = inferred.values == PixelValues::kUint16    ? DType::kUint16
                       : inferred.values == PixelValues::kFloat32 ? DType::kFloat32
                                                                  : input.dtype;
  DeepOutput output(stored, input.channels);
  for (const Operation& operation : operations) {
    operation->convert(output);
    if (output.failure()) return config_error(std::string(name_of(operation)) + ": " + *output.failure());
  }
  if (dtype && *dtype != output.dtype()) {
    const bool is_half = *dtype == DType::kFloat16 || *dtype == DType::kBfloat16;
    if (!is_half || output.dtype() != DType::kFloat32)
      return config_error("dtype: the images are " + std::string(name_of(output.dtype())) +
                          ", and stored values are not converted to " + std::string(name_of(*dtype)) +
                          ": omit dtype=, or use decode(dtype=\"float32\")");
    output.convert(*dtype, false);
  }
  output.finish(inferred.size.value_or(Size{kAnyLength, kAnyLength}), layout);
  return std::shared_ptr<const DeepChain>(new DeepChain(std::move(operations), input, std::move(output)));
}

Result<void> DeepChain::check(int channels, DType dtype) const {
  if (channels != input_.channels)
    return data_error("the image has " + with_unit(channels) + ", but that of the first sample has " +
                          with_unit(input_.channels) + ": convert the files to one kind",
                      "decode");
  const PixelValues values = decode().values;
  if (values == PixelValues::kNative && dtype != input_.dtype)
    return data_error("the image is stored as " + std::string(name_of(dtype)) + ", but that of the first sample as " +
                          std::string(name_of(input_.dtype)) +
                          ": use decode(dtype=\"float32\"), or convert the files to one dtype",
                      "decode");
  if (values == PixelValues::kUint16 && dtype != DType::kUint16 && dtype != DType::kUint8)
    return data_error("the image is stored as " + std::string(name_of(dtype)) +
                          ", which uint16 cannot hold: use decode(dtype=\"float32\") or decode(dtype=\"native\")",
                      "decode");
  return {};
}

Result<void> DeepChain::draw(Size image, const base::SampleKey& key, Drawing& drawing) const {
  FEEDLINE_TRY(drawing.size, draw_operations(operations_, 0, image, key, drawing));
  drawing.planes.reset();
  return {};
}

Result<void> DeepChain::apply(const Drawing& drawing, const memory::DeepView& decoded, DeepWorkspace& workspace,
                              ArrayView out) const {
  FEEDLINE_CHECK(decoded.width() == drawing.region.width && decoded.height() == drawing.region.height);
  FEEDLINE_CHECK(decoded.channels == input_.channels);
  return run_deep_steps(*drawing.steps, decoded, output_, workspace, out);
}

std::vector<DrawnValue> DeepChain::values(const Drawing& drawing) const { return values_of(drawing); }

std::vector<std::string> DeepChain::explain() const {
  std::vector<std::string> lines = explain_operations(operations_, "only the pixels it needs are decoded");
  lines.insert(lines.begin(), "decode to stored values as " + std::string(word_of(decode().values)) + ", with " +
                                  with_unit(input_.channels) +
                                  (decode().applies_exif ? ", after applying the EXIF orientation" : ""));
  std::string values;
  for (const Operation& operation : operations_)
    if (operation->properties().stage == Stage::kValues) values += (values.empty() ? "" : ", ") + describe(operation);
  lines.push_back("write " + std::string(name_of(output().dtype)) + " " + output().shape.to_string() +
                  (values.empty() ? "" : ", which holds " + values));
  return lines;
}

}  // namespace feedline::transform
