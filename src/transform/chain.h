// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled list of operations on one image field: shapes are checked once, parameters are drawn per sample, and
// pixels go from the decoded region to a row of the batch.

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

// Everything decided for one sample. A thread keeps one and reuses it. Opaque to other stages but for `region`.
class Drawing {
 public:
  Drawing();
  ~Drawing();
  Drawing(Drawing&&) noexcept;
  Drawing& operator=(Drawing&&) noexcept;

  Box region;  // the pixels of the source image that are needed: decode just these
  // Where planes of the region serve too, maybe as coarse as this.
  std::optional<memory::Coarseness> planes;
  Size size;                      // of what comes out
  IouCrops* iou_crops = nullptr;  // what random_iou_crop chose for the sample, before this is drawn; nullptr: nothing

  struct Steps;
  std::unique_ptr<Steps> steps;
};

// Scratch images of one thread.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl;
};

// Elements that a chain leaves to be made of the bytes of a row, (height, width, channels) of them, by a device.
struct LeftElements {
  ArraySpec spec;  // of a row, once they are made
  Layout layout = Layout::kNchw;
  Size size;
  int channels = 3;
  std::vector<std::byte> tables;  // (channels, 256) elements: what becomes of a byte
  int most_rectangles = 0;        // that are written over a row of elements
};
// One of these, in places of the output. Later ones lie on top.
struct LeftRectangle {
  Box box;
  std::array<std::uint32_t, 3> value{};  // of each channel: an element's bits, a narrow one's the low ones
};

// Immutable and thread-safe once compiled.
class Chain {
 public:
  // Infers dtype and shape through every operation. kConfig names the operation at fault: an argument out of range,
  // two operations that do not fit, no fixed output size at the end, normalize with the wrong number of channels.
  // `dtype`: the batch's element type, a final conversion as to_dtype(dtype, scale=true) does it; nullopt: as the
  // chain leaves it. `layout`: of the output row. kAny: a chain without a fixed output size is fine, its extents are
  // kAnyLength then, and apply() gets a row of the size that draw() gave.
  // `elements`: kLeft: a row gets bytes, where floats can be made of them later; left() says how, and output() is of
  // the bytes. kLeftToWriteOver: the same with rectangles behind operations on values, each of one value a channel.
  enum class OutputSize : std::uint8_t { kFixed, kAny };
  enum class Elements : std::uint8_t { kMade, kLeft, kLeftToWriteOver };
  static Result<std::shared_ptr<const Chain>> compile(std::span<const Operation> operations, std::optional<DType> dtype,
                                                      Layout layout, OutputSize size = OutputSize::kFixed,
                                                      Elements elements = Elements::kMade);
  // The operations from `first` on, for pixels that Preparation made with those before: what is drawn, and what comes
  // out, is what the whole chain gives.
  static Result<std::shared_ptr<const Chain>> compile_rest(std::span<const Operation> operations, std::size_t first,
                                                           std::optional<DType> dtype, Layout layout,
                                                           OutputSize size = OutputSize::kFixed,
                                                           Elements elements = Elements::kMade);
  // Likewise for a view of a sample, number `view`, on pixels that SharedSteps made with the operations before `first`:
  // the random ones draw from streams of the view's own. drawn_as: views whose streams the first of them draw from
  // instead. Requires: all of them < kMostViews.
  static Result<std::shared_ptr<const Chain>> compile_view(std::span<const Operation> operations, std::size_t first,
                                                           std::uint32_t view, std::optional<DType> dtype,
                                                           Layout layout, OutputSize size = OutputSize::kFixed,
                                                           std::span<const std::uint32_t> drawn_as = {},
                                                           Elements elements = Elements::kMade);
  static constexpr std::uint32_t kMostViews = 254;
  // As compile(), but a chain that has no fixed output size yet is fine.
  static Result<void> check(std::span<const Operation> operations);
  virtual ~Chain() = default;

  virtual ColorMode color_mode() const = 0;  // what decode must deliver
  virtual bool applies_exif() const = 0;     // is the image turned as its EXIF says, before anything is drawn?
  virtual Fidelity fidelity() const = 0;
  virtual const ArraySpec& output() const = 0;                                  // of one sample: (C, H, W) or (H, W, C)
  virtual std::shared_ptr<const LeftElements> left() const { return nullptr; }  // nullptr: rows get their elements
  // What a drawing writes over a row that is left.
  virtual std::vector<LeftRectangle> list_rectangles(const Drawing& /*drawing*/, Workspace& /*workspace*/) const {
    return {};
  }
  // Draws for an image of this size. kData when the image cannot take the operation (smaller than a random crop
  // without padding), naming it. Same key, same drawing, on every machine.
  virtual Result<void> draw(Size image, const base::SampleKey& key, Drawing& drawing) const = 0;
  // Runs the steps on `decoded`, the pixels of drawing.region, into `out`, which has output()'s spec, with the size of
  // the drawing where that has any.
  virtual Result<void> apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                             ArrayView out) const = 0;
  // The same on planes of drawing.region. Requires: drawing.planes, and none is coarser than that says.
  virtual Result<void> apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                             ArrayView out) const = 0;
  // The drawing in words, for Dataset::draw and tests.
  virtual std::vector<DrawnValue> values(const Drawing& drawing) const = 0;
  // What runs, fused as it will be, one line each.
  virtual std::vector<std::string> explain() const = 0;
};

// A single image, as Pillow's Image.resize. kConfig: a side below 1. Requires: `in` has 1 or 3 channels and is not
// `out`'s memory.
Result<void> resize(memory::PixelView in, Size out_size, Interpolation interpolation, Workspace& workspace,
                    memory::PixelBuffer& out);

}  // namespace feedline::transform
