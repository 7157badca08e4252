// SPDX-License-Identifier: Apache-2.0
#pragma once

// The destination of batches. The host device leaves the memory in place; a device with its own memory copies. Both
// follow the same contract, so all earlier stages run the same with and without a GPU.

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

// A batch in transfer.
struct Begun {
  std::shared_ptr<memory::Lease> memory;  // to read once ready; on the host, what was passed in
  std::shared_ptr<const Ready> ready;     // nullptr if ready at once
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual DevicePlace place() const { return {}; }
  // Returns true if batches are read where they were filled, so begin() does nothing and need not be called.
  virtual bool is_host() const = 0;
  virtual std::string explain() const { return std::string(name()); }  // a description for users
  // Returns the allocator of memory for filling batches: the fastest for this device to use or copy from. Blocks of one
  // size.
  virtual std::shared_ptr<memory::Allocator> allocator() = 0;
  // The same for data whose size is known only when a batch settles: blocks of many sizes.
  virtual std::shared_ptr<memory::Allocator> variable_allocator() { return allocator(); }
  // Starts the transfer of a batch's filled memory, which must not change any more, and returns before it is complete.
  // Any number may be in flight, finishing in any order. The device holds `filled` until the device has read the batch,
  // even if the caller releases `filled` or the result. An error here or from Ready::wait() means that the device
  // failed with this batch.
  virtual Result<Begun> begin(std::shared_ptr<memory::Lease> filled) = 0;
  // Returns true if begin_making() is supported; otherwise explain() gives the reason. The first call may be slow.
  virtual bool makes_elements() { return false; }
  // Like begin(), but also computes elements on the device. The result starts with them, followed by a copy of the
  // filled memory. Requires: makes_elements().
  virtual Result<Begun> begin_making(std::shared_ptr<memory::Lease> filled, const Finish& finish);
  // Reserves memory for images of this total size. kConfig: the device has no separate memory, or too little; the
  // message has the numbers.
  virtual Result<std::shared_ptr<ResidentImages>> make_resident_images(std::uint64_t bytes);
  // Returns an image decoder on the device for one loader. kConfig: the device has none; the message suggests a fix.
  virtual Result<std::shared_ptr<ImageDecoder>> decode_images();
};

std::shared_ptr<Device> host_device();

}  // namespace feedline::device
