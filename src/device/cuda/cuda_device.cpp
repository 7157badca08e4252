// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "device/cuda/copy_stream.h"
#include "device/cuda/device_memory.h"
#include "device/cuda/image_store.h"
#include "device/cuda/jpeg_decoder.h"
#include "device/cuda/pinned_allocator.h"
#include "device/cuda/pixel_kernels.h"

namespace feedline::device {
namespace {

using namespace cuda;

// Also returns true for the default stream while another stream that synchronizes with it is capturing.
Result<bool> is_capturing(const Context& context, StreamHandle stream) {
  return context.in([&]() -> Result<bool> {
    int capturing = 0;
    const int status = context.calls().stream_capturing(stream, &capturing);
    if (status == kCaptureImplicit) return true;
    FEEDLINE_CHECK_OK(context.driver().check("cuStreamIsCapturing", status));
    return capturing != 0;
  });
}

// A batch that is being copied to the GPU.
class Arrival final : public Ready {
 public:
  Arrival(std::shared_ptr<const Event> end, std::shared_ptr<DeviceMemory> memory)
      : end_(std::move(end)), memory_(std::move(memory)) {}

  bool is_ready() const override {
    if (is_ready_) return true;
    const auto past = end_->is_past();
    if (past && !*past) return false;
    if (past) is_ready_ = true;
    return true;  // it has ended; wait() returns the error
  }
  Result<void> wait() const override {
    if (is_ready_) return {};
    FEEDLINE_CHECK_OK(end_->wait());
    is_ready_ = true;
    return {};
  }
  // A stream that is capturing a CUDA graph must not wait for other work, and the data must be present each time the
  // graph runs. In this case, the host waits instead.
  Result<void> let_wait(std::uintptr_t stream_number) const override {
    const auto stream = reinterpret_cast<StreamHandle>(stream_number);
    const Context& context = end_->context();
    FEEDLINE_TRY(const bool capturing, is_capturing(context, stream));
    if (capturing) return wait();
    if (!is_ready_) FEEDLINE_CHECK_OK(end_->let_wait(stream));
    return memory_->mark(stream);
  }

 private:
  const std::shared_ptr<const Event> end_;
  const std::shared_ptr<DeviceMemory> memory_;
  mutable std::atomic<bool> is_ready_ = false;
};

// Returns a function that reclaims the blocks that a stream has read. The function does nothing if the device no longer
// exists.
std::function<void()> recall_of(const std::shared_ptr<CopyStream>& stream) {
  return [weak = std::weak_ptr<CopyStream>(stream)] {
    if (const auto alive = weak.lock()) alive->sweep();
  };
}

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Element::kFloat32;
    case DType::kFloat16:
      return Element::kFloat16;
    case DType::kBfloat16:
      return Element::kBfloat16;
    default:
      FEEDLINE_CHECK(dtype == DType::kUint8);
      return Element::kUint8;
  }
}

// The offsets of the parts of a batch in GPU memory, in this order.
struct Parts {
  std::byte* made;
  std::byte* filled;   // as copied
  std::byte* scratch;  // rows made from cached images
};

std::uint64_t row_bytes(const Finish::Images& images) {
  return static_cast<std::uint64_t>(images.size.width) * static_cast<std::uint64_t>(images.size.height) *
         static_cast<std::uint64_t>(images.channels);
}

PixelJob job_of(const Finish::Images& images, const Parts& parts) {
  PixelJob job{};
  job.in = reinterpret_cast<const std::uint8_t*>((images.from_resident ? parts.scratch : parts.filled) + images.from);
  job.in_stride = row_bytes(images);
  job.out = parts.made + images.to;
  job.out_stride = job.in_stride * size_of(element_of(images.dtype));
  if (images.dtype != DType::kUint8) job.tables = parts.filled + images.tables;
  if (images.mixed) job.mixed = reinterpret_cast<const MixedRow*>(parts.filled + *images.mixed);
  if (images.inputs) {
    job.inputs = reinterpret_cast<const PixelRow*>(parts.filled + *images.inputs);
    job.rectangles = reinterpret_cast<const Rectangle*>(parts.filled + images.rectangles);
  }
  job.rows = static_cast<std::uint32_t>(images.rows);
  job.width = static_cast<std::uint32_t>(images.size.width);
  job.height = static_cast<std::uint32_t>(images.size.height);
  job.channels = static_cast<std::uint32_t>(images.channels);
  job.planar = images.layout == Layout::kNchw;
  return job;
}

// Requires: images.from_resident.
CachedRowsJob cached_rows_job_of(const Finish::Images& images, const Parts& parts) {
  return {.in = reinterpret_cast<const std::uint8_t*>(parts.filled + images.from_resident->from),
          .in_stride = images.from_resident->stride,
          .out = reinterpret_cast<std::uint8_t*>(parts.scratch + images.from),
          .out_stride = row_bytes(images),
          .rows = static_cast<std::uint32_t>(images.from_resident->rows),
          .width = static_cast<std::uint32_t>(images.size.width),
          .height = static_cast<std::uint32_t>(images.size.height),
          .channels = static_cast<std::uint32_t>(images.channels)};
}

Result<void> check_jobs(const Finish::Images& images, const Parts& parts) {
  if (images.from_resident) FEEDLINE_CHECK_OK(check_job(cached_rows_job_of(images, parts)));
  return check_job(job_of(images, parts), element_of(images.dtype));
}

// Returns whether a row has colour changes; reads the filled memory on the host.
bool has_colours(const Finish::Images::FromResident& rows, const std::byte* filled) {
  const std::byte* row = filled + rows.from;
  for (std::uint64_t i = 0; i < rows.rows; ++i, row += rows.stride)
    if (reinterpret_cast<const CachedRow*>(row)->colours != 0) return true;
  return false;
}

// Objects that must exist until a batch is made.
struct Needed {
  std::shared_ptr<const PixelKernels> kernels;
  std::shared_ptr<const ResidentImages> resident;
  JpegDecoder::Images decoded;
};

// Returns the decoded images for this batch's rows.
Result<JpegDecoder::Images> decoded_for(const Finish& finish, const std::byte* filled, const Context& context) {
  JpegDecoder::Images images;
  if (!finish.decoded) return images;
  auto* const decoder = dynamic_cast<JpegDecoder*>(finish.decoded.get());
  FEEDLINE_CHECK(decoder != nullptr && decoder->is_of(context));
  for (const Finish::Images& field : finish.images)
    if (field.from_resident)
      decoder->take(filled + field.from_resident->from, field.from_resident->stride, field.from_resident->rows, images);
  return images;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<const Context> context, std::shared_ptr<CopyStream> stream)
      : context_(std::move(context)),
        stream_(std::move(stream)),
        name_("cuda:" + std::to_string(context_->index())),
        pinned_(std::make_shared<PinnedAllocator>(context_, recall_of(stream_))),
        variable_pinned_(std::make_shared<PinnedAllocator>(context_, recall_of(stream_))),
        memory_(std::make_shared<DeviceMemory>(context_, stream_->handle())) {}

  std::string_view name() const override { return name_; }
  DeviceLocation location() const override { return {DeviceKind::kCuda, context_->index()}; }
  bool is_host() const override { return false; }
  std::string explain() const override;
  std::shared_ptr<memory::Allocator> allocator() override { return pinned_; }
  std::shared_ptr<memory::Allocator> variable_allocator() override { return variable_pinned_; }
  Result<Begun> begin(std::shared_ptr<memory::Lease> filled) override {
    FEEDLINE_TRY(auto copy, memory::Lease::take(memory_, filled->bytes()));
    FEEDLINE_TRY(auto end, stream_->copy(std::move(filled), copy->data()));
    return Begun{std::move(copy), std::make_shared<Arrival>(std::move(end), memory_)};
  }
  bool makes_elements() override;
  Result<Begun> begin_making(std::shared_ptr<memory::Lease> filled, const Finish& finish) override;
  Result<std::shared_ptr<ResidentImages>> make_resident_images(std::uint64_t bytes) override {
    FEEDLINE_TRY(auto store, ImageStore::make(context_, bytes));
    return store;
  }
  Result<std::shared_ptr<ImageDecoder>> decode_images() override;

 private:
  const std::shared_ptr<const Context> context_;
  const std::shared_ptr<CopyStream> stream_;
  const std::string name_;
  const std::shared_ptr<PinnedAllocator> pinned_;
  const std::shared_ptr<PinnedAllocator> variable_pinned_;
  const std::shared_ptr<DeviceMemory> memory_;
  std::once_flag loaded_;
  std::shared_ptr<const PixelKernels> kernels_;  // nullptr: not requested, or unavailable
  std::string without_kernels_;                  // why they are unavailable
};

bool CudaDevice::makes_elements() {
  std::call_once(loaded_, [this] {
    auto kernels = PixelKernels::load(context_);
    if (kernels)
      kernels_ = std::move(*kernels);
    else
      without_kernels_ = kernels.error().what;
  });
  return kernels_ != nullptr;
}

Result<Begun> CudaDevice::begin_making(std::shared_ptr<memory::Lease> filled, const Finish& finish) {
  FEEDLINE_CHECK(kernels_ != nullptr);
  const auto* const store = dynamic_cast<const ImageStore*>(finish.resident.get());
  FEEDLINE_CHECK((store == nullptr) == (finish.resident == nullptr) && (store == nullptr || store->is_of(*context_)));
  FEEDLINE_TRY(auto made, memory::Lease::take(memory_, finish.made_bytes + filled->bytes() + finish.scratch_bytes));
  std::byte* const arrived = made->data() + finish.made_bytes;
  const Parts parts{made->data(), arrived, arrived + filled->bytes()};
  for (const Finish::Images& images : finish.images) FEEDLINE_CHECK_OK(check_jobs(images, parts));
  FEEDLINE_TRY(auto decoded, decoded_for(finish, filled->data(), *context_));
  const auto needs = std::make_shared<const Needed>(kernels_, finish.resident, std::move(decoded));
  const auto launch = [&, host = filled->data()](StreamHandle stream) -> Result<void> {
    for (const auto& image : needs->decoded) FEEDLINE_CHECK_OK(image->end->let_wait(stream));
    if (store != nullptr) FEEDLINE_CHECK_OK(store->let_wait(stream));
    for (const Finish::Images& images : finish.images) {
      if (images.from_resident) FEEDLINE_CHECK_OK(kernels_->launch(cached_rows_job_of(images, parts), stream));
      if (images.from_resident && has_colours(*images.from_resident, host))
        FEEDLINE_CHECK_OK(kernels_->launch_colours(cached_rows_job_of(images, parts), stream));
      FEEDLINE_CHECK_OK(kernels_->launch(job_of(images, parts), element_of(images.dtype), stream));
    }
    return {};
  };
  FEEDLINE_TRY(auto end, stream_->copy(std::move(filled), arrived, {launch, needs}));
  return Begun{std::move(made), std::make_shared<Arrival>(std::move(end), memory_)};
}

Result<std::shared_ptr<ImageDecoder>> CudaDevice::decode_images() {
  if (!makes_elements())
    return config_error("decode(device=\"cuda\"): kernels do not run on this GPU (" + without_kernels_ +
                        "); omit device= in decode to decode on the CPU");
  FEEDLINE_TRY(auto decoder, JpegDecoder::make(context_));
  return decoder;
}

std::string CudaDevice::explain() const {
  std::string text = name_ + " (" + context_->name() +
                     "), copied from page-locked memory on a separate stream as soon as a batch is filled; the "
                     "stream that uses it waits, not the host; page-locked memory is " +
                     pinned_->explain_node();
  if (kernels_) text += "; makes floats from the images' bytes itself (" + kernels_->image() + ")";
  if (!without_kernels_.empty()) text += "; the CPU makes the images' floats: " + without_kernels_;
  if (context_->calls().context_record == nullptr)
    text +=
        "; this driver cannot record an event for all streams (CUDA 12.5 can), so hold a batch that is used on another "
        "stream than the one that took it until that use is done";
  return text;
}

}  // namespace

Result<std::shared_ptr<Device>> cuda_device(int index) {
  FEEDLINE_TRY(auto driver, Driver::open());
  FEEDLINE_TRY(auto context, Context::open(std::move(driver), index));
  FEEDLINE_TRY(auto stream, CopyStream::make(context));
  return std::make_shared<CudaDevice>(std::move(context), std::move(stream));
}

}  // namespace feedline::device
