// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where batches end up. The host device leaves the memory as it is; a device with memory of its own copies. Both keep
// the same contract, so everything before them runs the same with and without a GPU.

#include <memory>
#include <string>
#include <string_view>

#include "device/finish.h"
#include "device/image_decoder.h"
#include "device/kept_images.h"
#include "feedline/device.h"
#include "feedline/error.h"
#include "memory/allocator.h"

namespace feedline::device {

// What a device was given, on its way.
struct Begun {
  std::shared_ptr<memory::Lease> memory;  // what the training loop reads, once it is ready; the host's is what it gave
  std::shared_ptr<const Ready> ready;     // nullptr: at once
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual DevicePlace place() const { return {}; }
  // Is a batch read where it was filled, so that begin() has nothing to do and need not be called?
  virtual bool is_host() const = 0;
  virtual std::string explain() const { return std::string(name()); }  // what it does with a batch, for people
  // What batches are filled in: memory that this device takes over or copies from fastest. Blocks of one size.
  virtual std::shared_ptr<memory::Allocator> allocator() = 0;
  // The same for what is known in size only once a batch settles: blocks of many sizes.
  virtual std::shared_ptr<memory::Allocator> late_allocator() { return allocator(); }
  // Takes a batch's filled memory, which nobody writes any more, and returns before it is on the device. Any number may
  // be on their way, and be ready in any order. The device keeps `filled` until it reads it no more, whoever lets go of
  // it or of what is returned. An error here or of Ready::wait(): the device has failed with this batch.
  virtual Result<Begun> begin(std::shared_ptr<memory::Lease> filled) = 0;
  // Can begin_making() be called? Where not, explain() says why. May take a while, the first time.
  virtual bool makes_elements() { return false; }
  // As begin(), for a batch of which elements are made there. What is returned begins with these, and what was filled
  // lies behind them, as it is. Requires: makes_elements().
  virtual Result<Begun> begin_making(std::shared_ptr<memory::Lease> filled, const Finish& finish);
  // Room for images of so many bytes in all, held from now on. kConfig: the device has none of its own, or has not so
  // much; the message has the numbers.
  virtual Result<std::shared_ptr<KeptImages>> keep_images(std::uint64_t bytes);
  // What decodes images there, for one loader. kConfig: nothing does; the message says what to do.
  virtual Result<std::shared_ptr<ImageDecoder>> decode_images();
};

std::shared_ptr<Device> host_device();

}  // namespace feedline::device
