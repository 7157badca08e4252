// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled list of operations for one image field. Shapes are checked once, parameters are drawn for each sample, and
// pixels are processed from the decoded region to a row of the batch.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "memory/planes.h"

namespace feedline::transform {

class IouCrops;

// All decisions that were drawn for one sample. Each thread reuses one object. Other stages use only the public
// members.
class Drawing {
 public:
  Drawing();
  ~Drawing();
  Drawing(Drawing&&) noexcept;
  Drawing& operator=(Drawing&&) noexcept;

  Box region;  // the pixels of the source image that must be decoded
  // The coarsest planes of the region that may be used instead of pixels; not set if pixels are required.
  std::optional<memory::Coarseness> planes;
  Size size;                      // of the output
  IouCrops* iou_crops = nullptr;  // random_iou_crop's choices for the sample, set before drawing; nullptr: none

  struct Steps;
  std::unique_ptr<Steps> steps;
};

// The scratch images of one thread.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl;
};

// Describes how a device computes a row's elements from its (height, width, channels) bytes.
struct DeviceElements {
  ArraySpec spec;  // of the finished row
  Layout layout = Layout::kNchw;
  Size size;
  int channels = 3;
  std::vector<std::byte> tables;  // (channels, 256) elements: the element for each byte value
  int most_rectangles = 0;        // written over a row of elements
};
// A rectangle in coordinates of the output row. Later rectangles cover earlier ones.
struct DeviceRectangle {
  Box box;
  std::array<std::uint32_t, 3> value{};  // per channel, the element's bits; narrow elements use the low bits
};

// Immutable and thread-safe after compilation.
class Chain {
 public:
  // Infers dtype and shape through all operations. kConfig names the invalid operation: an argument out of range, two
  // operations that conflict, no fixed output size at the end, or normalize with the wrong number of channels. dtype:
  // the batch's element type, to which values are converted like to_dtype(dtype, scale=true); nullopt: the chain's own
  // dtype. layout: the output row's layout. With OutputSize::kAny, the chain need not have a fixed output size; its
  // extents are then kAnyLength, and apply() receives a row of the size that draw() returned. elements: with kOnDevice,
  // a row contains bytes if the device can convert them to floats; device_elements() then describes the conversion, and
  // output() describes the bytes. kOnDeviceUnderRectangles also allows rectangles after operations on values, with one
  // value per channel. input: the size of all images, if known.
  enum class OutputSize : std::uint8_t { kFixed, kAny };
  enum class Elements : std::uint8_t { kMade, kOnDevice, kOnDeviceUnderRectangles };
  static Result<std::shared_ptr<const Chain>> compile(std::span<const Operation> operations, std::optional<DType> dtype,
                                                      Layout layout, OutputSize size = OutputSize::kFixed,
                                                      Elements elements = Elements::kMade,
                                                      std::optional<Size> input = {});
  // Compiles the operations from `first` on, for pixels that Preparation has made with the earlier operations. The
  // draws and the output equal those of the whole chain.
  static Result<std::shared_ptr<const Chain>> compile_rest(std::span<const Operation> operations, std::size_t first,
                                                           std::optional<DType> dtype, Layout layout,
                                                           OutputSize size = OutputSize::kFixed,
                                                           Elements elements = Elements::kMade);
  // Compiles view number `view` of a sample, for pixels that SharedSteps has made with the operations before `first`.
  // Random operations draw from the view's own streams. drawn_as: for the first of these operations, the views whose
  // streams they use instead. Requires: all view numbers are below kMostViews.
  static Result<std::shared_ptr<const Chain>> compile_view(std::span<const Operation> operations, std::size_t first,
                                                           std::uint32_t view, std::optional<DType> dtype,
                                                           Layout layout, OutputSize size = OutputSize::kFixed,
                                                           std::span<const std::uint32_t> drawn_as = {},
                                                           Elements elements = Elements::kMade);
  static constexpr std::uint32_t kMostViews = 254;
  // Like compile(), but a fixed output size is not required.
  static Result<void> check(std::span<const Operation> operations);
  virtual ~Chain() = default;

  virtual ColorMode color_mode() const = 0;  // the mode to decode to
  virtual bool applies_exif() const = 0;     // whether the image is rotated by its EXIF orientation before drawing
  virtual Fidelity fidelity() const = 0;
  virtual const ArraySpec& output() const = 0;  // of one sample: (C, H, W) or (H, W, C)
  virtual std::shared_ptr<const DeviceElements> device_elements() const {
    return nullptr;
  }  // nullptr if rows hold finished
     // elements
  // Returns the rectangles that a drawing draws over a row that the device finishes.
  virtual std::vector<DeviceRectangle> list_rectangles(const Drawing& /*drawing*/, Workspace& /*workspace*/) const {
    return {};
  }
  // Draws the parameters for an image of this size. The same key produces the same drawing on every machine. kData
  // names the operation that cannot be applied to the image, such as a random crop without padding that is larger than
  // the image.
  virtual Result<void> draw(Size image, const base::SampleKey& key, Drawing& drawing) const = 0;
  // Runs the steps on `decoded` (the pixels of drawing.region) and writes the result to `out`, which has the spec of
  // output(), or the size of the drawing if that spec has no size.
  virtual Result<void> apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                             ArrayView out) const = 0;
  // Like apply(), but `decoded` contains planes of drawing.region. Requires: drawing.planes is set, and no plane is
  // coarser than it allows.
  virtual Result<void> apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                             ArrayView out) const = 0;
  // Describes the drawing, for Dataset::draw and tests.
  virtual std::vector<DrawnValue> values(const Drawing& drawing) const = 0;
  // Describes the fused steps, one per line.
  virtual std::vector<std::string> explain() const = 0;
};

// Resizes an image like Pillow's Image.resize. kConfig: a side is below 1. Requires: `in` has 1 or 3 channels and does
// not overlap `out`.
Result<void> resize(memory::PixelView in, Size out_size, Interpolation interpolation, Workspace& workspace,
                    memory::PixelBuffer& out);

}  // namespace feedline::transform
