// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device that batches are delivered to. The host device leaves batches in the memory where they were filled; a device
// with its own memory copies them. Both kinds of device follow the same contract, so all earlier stages are the same
// with and without a GPU.

#include <memory>
#include <string>
#include <string_view>

#include "device/finish.h"
#include "device/image_decoder.h"
#include "device/resident_images.h"
#include "feedline/device.h"
#include "feedline/error.h"
#include "memory/allocator.h"

namespace feedline::device {

// A batch whose transfer has begun.
struct Begun {
  std::shared_ptr<memory::Lease> memory;  // to read once ready; on the host, what was passed in
  std::shared_ptr<const Ready> ready;     // nullptr if ready at once
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual DeviceLocation location() const { return {}; }
  // Returns whether batches are used in the memory where they were filled; begin() then does nothing and need not be
  // called.
  virtual bool is_host() const = 0;
  virtual std::string explain() const { return std::string(name()); }  // a description for users
  // Returns the allocator for the memory in which batches are filled: the memory that this device can use or copy
  // fastest. All blocks have the same size.
  virtual std::shared_ptr<memory::Allocator> allocator() = 0;
  // Like allocator(), for data whose size is known only when a batch is complete: blocks have many sizes.
  virtual std::shared_ptr<memory::Allocator> variable_allocator() { return allocator(); }
  // Starts the transfer of a batch's filled memory and returns before the transfer is complete. The memory must not
  // change after this call. Any number of transfers may be in flight, and they may complete in any order. The device
  // retains `filled` until it has read the batch, even if the caller releases `filled` or the result. An error from
  // this function or from Ready::wait() means that the device failed to deliver this batch.
  virtual Result<Begun> begin(std::shared_ptr<memory::Lease> filled) = 0;
  // Returns whether begin_making() is supported; if not, explain() gives the reason. The first call may be slow.
  virtual bool makes_elements() { return false; }
  // Like begin(), but also computes elements on the device. The result consists of these elements, followed by a copy
  // of the filled memory. Requires: makes_elements().
  virtual Result<Begun> begin_making(std::shared_ptr<memory::Lease> filled, const Finish& finish);
  // Reserves memory for images of this total size. kConfig: the device has no separate memory, or not enough; the
  // message reports the sizes.
  virtual Result<std::shared_ptr<ResidentImages>> make_resident_images(std::uint64_t bytes);
  // Returns a decoder that decodes images on the device for one loader. kConfig: the device has no decoder; the message
  // suggests a fix.
  virtual Result<std::shared_ptr<ImageDecoder>> decode_images();
};

std::shared_ptr<Device> host_device();

}  // namespace feedline::device
