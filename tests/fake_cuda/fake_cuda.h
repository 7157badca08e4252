// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a test does as the GPU, and asks about it: functions that the fake driver has beside CUDA's. A test looks them
// up in the library that it opened, as the engine does with CUDA's.

#include <cstddef>
#include <cstdint>

extern "C" {
// Everything is as at the start: no memory, no streams, no faults, no violations. Of so many devices.
void fake_cuda_reset(int devices, std::size_t bytes_each, int version);
// held: what streams are given is done only by fake_cuda_step(), or where somebody waits for it. Else at once.
void fake_cuda_hold(int held);
// Does one piece of work, of one of the streams that can go on: which, `choice` says, whatever it is. 0: none can.
int fake_cuda_step(std::uint64_t choice);
// A kernel on a stream of the training loop (made by fake_cuda_stream): when it runs it finds `value` in all of these
// bytes, or that is a violation.
void fake_cuda_expect(void* stream, std::uint64_t address, std::size_t bytes, int value);
void* fake_cuda_stream(int device);
// What the training loop does by itself, as torch: a copy from host memory on one of its streams, where that is page-
// locked; a device of which it has a context. is_pinned: of these bytes, any.
void fake_cuda_take(void* stream, const void* data, std::size_t bytes);
void fake_cuda_use(int device);
int fake_cuda_is_pinned(const void* data, std::size_t bytes);
// The device does all that it can do without another.
void fake_cuda_finish(int device);
// Copies back to the host, at once; reading what a copy is still to write is a violation. 0: no such memory.
int fake_cuda_read(std::uint64_t address, void* to, std::size_t bytes);
// The `nth` call (from 1) of that name from now on fails with `status`; nullptr: none. calls: so far, of that name.
void fake_cuda_fail(const char* call, int nth, int status);
long fake_cuda_calls(const char* call);
// A device of which nothing more is done, and whose calls fail with `status`; 0: it is mended.
void fake_cuda_lose(int device, int status);
void fake_cuda_capture(void* stream, int capturing);  // 1 and 2: the default streams
void fake_cuda_end(int ended);  // as when the process ends: calls fail with CUDA_ERROR_DEINITIALIZED
// A JPEG of that size, in one colour of three equal bytes, to `to`, which has room for so many; gives its length.
// components: 3, or 1 of grey.
std::size_t fake_nvjpeg_encode(int width, int height, int components, int value, void* to, std::size_t room);
// Broken rules; their words, one a line. forgive: they are forgotten.
void fake_cuda_forgive();
int fake_cuda_violations();
const char* fake_cuda_words();
// What is there now: "pinned", "pinned_bytes", "memory", "memory_bytes", "streams", "events", "contexts", "pending",
// "modules", "jpegs" (what nvJPEG has handles of), and how often the host waited for the GPU: "waits". Streams of
// fake_cuda_stream() are not counted. "made": contexts that were retained where nobody had one, so far.
long fake_cuda_count(const char* what);
}
